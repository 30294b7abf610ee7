// Going on with a run, and taking cells of another: what holds is kept, what does not is repeated.
#include <signal.h>

#include "tests/program/runs.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

const Json three_cells = {{"a", Json::object()}, {"b", {{"length", 16}}}, {"c", {{"length", 24}}}};

Json timing_of(const Json& cell) { return cell["timing"]["forward"]["rounds"]; }

}  // namespace

TEST_CASE("a journal whose last line was cut off is gone on with", "[resume]") {
  const Bench bench(three_cells);
  REQUIRE(bench.run(bench.command()).exit_code == 0);
  const std::string whole = bench.journal();
  write_file(bench.folder() + "/journal.jsonl", whole.substr(0, whole.size() - 20));
  REQUIRE(bench.records().size() == 5);
  const Finished resumed = bench.run(bench.resume_command());
  INFO(resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK(bench.records().size() == 6);
  CHECK(bench.state() == "complete");
}

TEST_CASE("a journal whose header does not hold is refused by its name", "[resume]") {
  const Bench bench(three_cells, 1);
  REQUIRE(bench.run(bench.command()).exit_code == 0);
  const std::string whole = bench.journal();
  const std::size_t end = whole.find('\n');
  const Json header = Json::parse(whole.substr(0, end));
  const auto refused = [&](const std::string& path, const Json& value, const std::string& reason) {
    Json changed = header;
    changed[Json::json_pointer(path)] = value;
    write_file(bench.folder() + "/journal.jsonl", changed.dump() + whole.substr(end));
    const Finished resumed = bench.run(bench.resume_command());
    INFO(path << ": " << resumed.err);
    CHECK(resumed.exit_code == 2);
    CHECK_THAT(resumed.err, Contains("journal.jsonl:1") && Contains(reason));
  };
  refused("/suite/tasks/kernel/figures", {"time", 0}, "/tasks/kernel/figures/1");
  refused("/cells/1", header["cells"][0], "twice");
  refused("/cells/1/device", "cpuu", "cpuu");
}

TEST_CASE("a run that is whole measures nothing when it is gone on with", "[resume]") {
  const Bench bench(three_cells);
  REQUIRE(bench.run(bench.command()).exit_code == 0);
  const auto before = bench.cells();
  REQUIRE(bench.run(bench.resume_command()).exit_code == 0);
  CHECK(bench.records().size() == 6);
  for (const auto& [label, cell] : bench.cells()) {
    CHECK(timing_of(cell) == timing_of(before.at(label)));
  }
}

TEST_CASE("cells that changed since are repeated, with the reason", "[resume]") {
  const Bench bench(three_cells, 1);
  REQUIRE(bench.run(bench.command()).exit_code == 0);
  const Finished resumed = bench.run(bench.resume_command({"--seed", "7"}));
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.err, Contains("another seed"));
  CHECK(bench.records().size() == 6);
}

TEST_CASE("more rounds are added to those that are there", "[resume]") {
  const Bench bench(three_cells, 1);
  REQUIRE(bench.run(bench.command()).exit_code == 0);
  REQUIRE(bench.run(bench.resume_command({"--rounds", "3"})).exit_code == 0);
  CHECK(bench.records().size() == 9);
  for (const auto& [label, cell] : bench.cells()) CHECK(timing_of(cell).size() == 3);
}

TEST_CASE("cells of a status are tried again on demand", "[resume]") {
  const Bench bench({{"a", Json::object()}, {"b", {{"how", "hang"}}}}, 1);
  REQUIRE(bench.run(bench.command({"--cell-timeout", "0.5"})).exit_code == 0);
  REQUIRE(bench.status("b") == "timeout");
  const std::map<std::string, std::string> awake{{"MISBEHAVE_AWAKE", "1"}};
  REQUIRE(bench.run(bench.resume_command(), awake).exit_code == 0);
  CHECK(bench.status("b") == "timeout");
  const Finished again = bench.run(bench.resume_command({"--retry", "timeout,crashed"}), awake);
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.err, Contains("--retry timeout"));
  CHECK(bench.status("b") == "ok");
  CHECK(bench.records().size() == 3);
  CHECK(bench.run(bench.command({"--retry", "timeout"})).exit_code == 2);
}

TEST_CASE("unchanged cells of another run are taken as they are", "[resume]") {
  const Bench old_run(three_cells, 1);
  REQUIRE(old_run.run(old_run.command()).exit_code == 0);
  Json more = three_cells;
  more["d"] = {{"length", 32}};
  const Bench bench(more, 1);
  const Finished run = bench.run(bench.command({"--reuse", old_run.folder()}));
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err, Contains("3 of 4 cells"));
  const auto before = old_run.cells();
  auto now = bench.cells();
  for (const char* label : {"a", "b", "c"}) {
    CHECK(timing_of(now[label]) == timing_of(before.at(label)));
    CHECK(now[label]["reused_from"] == old_run.folder());
  }
  CHECK(was_measured(now["d"]));
  CHECK_FALSE(now["d"].contains("reused_from"));
}

TEST_CASE("two runs cannot have one folder", "[resume]") {
  const Bench bench({{"a", Json::object()}, {"b", {{"how", "hang"}}}}, 1);
  Running first(bench.command(), bench / "output", bench.environment());
  REQUIRE(wait_until([&] { return child_of(first) > 0 && bench.records().size() == 1; }));
  const Finished second = bench.run(bench.resume_command());
  CHECK(second.exit_code == 2);
  CHECK_THAT(second.err, Contains("another attnbench is writing to " + bench.folder()));
  const Finished third = bench.run(bench.command());
  CHECK(third.exit_code == 2);
  CHECK_THAT(third.err, Contains("--resume"));
  CHECK(bench.records().size() == 1);
  first.signal(SIGINT);
  CHECK(first.wait(10) == 130);
}

TEST_CASE("shards share the cells without overlap", "[resume]") {
  Json entries = Json::object();
  for (int i = 0; i < 8; ++i) entries["cell " + std::to_string(i)] = {{"length", 8 + i}};
  std::map<std::string, int> seen;
  for (const char* shard : {"1/2", "2/2"}) {
    const Bench bench(entries, 1);
    const Finished run = bench.run(bench.command({"--shard", shard}));
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    for (const auto& [label, cell] : bench.cells()) ++seen[label];
  }
  CHECK(seen.size() == 8);
  for (const auto& [label, count] : seen) CHECK(count == 1);
}

TEST_CASE("run refuses what it cannot do, and leaves no file behind", "[resume]") {
  const Bench bench(three_cells);
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--jobs", "2"}, "one at a time"},      {{"--shard", "3/2"}, "I/N"},
      {{"--memory-limit", "much"}, "512M"},    {{"--retry", "sometimes"}, "out_of_memory"},
      {{"--fail-on", "never"}, "unsupported"}, {{"--resume", "/nowhere"}, "/nowhere"},
      {{"--only", "nothing at all"}, "--only"}};
  for (const auto& [flags, message] : wrong) {
    const Finished run = bench.run(bench.command(flags));
    INFO(flags[0] << " " << flags[1] << "\n" << run.err);
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, Contains(message));
    CHECK_FALSE(std::filesystem::exists(bench.folder()));
  }
}
