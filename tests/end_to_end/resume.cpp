// Going on with a run, and taking cells of another: what holds is kept, what does not is repeated.
// Which records hold is in tests/harness/program/run/folder/resume.cpp.
#include <signal.h>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

const Json three_cells = {{"a", Json::object()}, {"b", {{"length", 16}}}, {"c", {{"length", 24}}}};

/// One round of three cells, measured once for all that look at it.
const Bench& measured() {
  static const Bench once(three_cells, 1);
  if (!std::filesystem::exists(once.folder())) REQUIRE(once.run().exit_code == 0);
  return once;
}

/// A copy of it, to go on with.
struct Copy : Bench {
  Copy() : Bench(three_cells, 1) { take_run_of(measured()); }
  void write_journal(const std::string& text) const {
    write_file(folder() + "/journal.jsonl", text);
  }
};

Json timing_of(const Json& cell) { return cell["timing"]["forward"]["rounds"]; }

/// The rounds without what they are judged to be: "slow" is said beside the rest of a run, which
/// grows when cells are added.
Json measured_of(const Json& cell) {
  Json rounds = timing_of(cell);
  for (Json& round : rounds) {
    round.erase("disturbed");
    round.erase("disturbed_by");
  }
  return rounds;
}

}  // namespace

TEST_CASE("a cut run is gone on with at its rest, and measures nothing once it is whole",
          "[resume]") {
  const Copy run;
  const std::string whole = run.journal();
  run.write_journal(whole.substr(0, whole.size() - 20));
  REQUIRE(run.records().size() == 2);
  const Finished resumed = run.resume();
  INFO(resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK(run.records().size() == 3);
  CHECK(run.state() == "complete");
  const auto before = run.cells();
  REQUIRE(run.resume().exit_code == 0);
  CHECK(run.records().size() == 3);
  for (const auto& [label, cell] : run.cells()) {
    CHECK(measured_of(cell) == measured_of(before.at(label)));
  }
}

TEST_CASE("a journal whose header does not hold is refused by its name", "[resume]") {
  const Copy run;
  const std::string whole = run.journal();
  const std::size_t end = whole.find('\n');
  const Json header = Json::parse(whole.substr(0, end));
  const std::vector<std::tuple<std::string, Json, std::string>> changes{
      {"/suite/tasks/kernel/figures", {"time", 0}, "/tasks/kernel/figures/1"},
      {"/cells/1", header["cells"][0], "twice"},
      {"/cells/1/device", "cpuu", "cpuu"}};
  for (const auto& [path, value, reason] : changes) {
    Json changed = header;
    changed[Json::json_pointer(path)] = value;
    run.write_journal(changed.dump() + whole.substr(end));
    const Finished resumed = run.resume();
    INFO(path << ": " << resumed.err);
    CHECK(resumed.exit_code == 2);
    CHECK_THAT(resumed.err, Contains("journal.jsonl:1") && Contains(reason));
  }
}

TEST_CASE("cells that changed since are repeated, with the reason", "[resume]") {
  const Copy run;
  const Finished resumed = run.resume("--seed 7");
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.err, Contains("another seed"));
  CHECK(run.records().size() == 6);
}

TEST_CASE("more rounds are added to those that are there", "[resume]") {
  const Copy run;
  REQUIRE(run.resume("--rounds 2").exit_code == 0);
  CHECK(run.records().size() == 6);
  for (const auto& [label, cell] : run.cells()) CHECK(timing_of(cell).size() == 2);
}

TEST_CASE("a budget gives each cell a round at least, and is kept by a run that goes on",
          "[resume]") {
  const Bench bench(three_cells);
  const Finished run = bench.run("--budget 0.01s");
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("is used up before each cell had its 3 rounds"));
  for (const auto& [label, cell] : bench.cells()) CHECK(timing_of(cell).size() == 1);
  // Each length has one mechanism, so that three rounds decide all but what is disturbed.
  const Finished resumed = bench.resume("--budget 60s");
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.out, Contains("the budget of 60 s"));
  CHECK(bench.records().size() >= 9);
  CHECK_THAT(bench.resume().out, Contains("the budget of 60 s"));
}

TEST_CASE("cells of a status are tried again on demand", "[resume][processes]") {
  const Bench bench({{"a", Json::object()}, {"b", {{"how", "hang"}}}}, 1);
  {
    Running first(bench.command("--cell-timeout 600"), bench / "output");
    pid_t child = -1;
    REQUIRE(
        wait_until([&] { return (child = child_of(first)) > 0 && bench.records().size() == 1; }));
    kill(child, SIGKILL);
    REQUIRE(first.wait() == 5);
  }
  REQUIRE(bench.status("b") == "crashed");
  const std::map<std::string, std::string> awake{{"MISBEHAVE_AWAKE", "1"}};
  CHECK(bench.resume("", awake).exit_code == 5);
  CHECK(bench.status("b") == "crashed");
  const Finished again = bench.resume("--retry timeout,crashed", awake);
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.err, Contains("--retry "));
  CHECK(bench.status("b") == "ok");
  CHECK(bench.records().size() == 3);
  CHECK(bench.run("--retry timeout").exit_code == 2);
}

TEST_CASE("unchanged cells of another run are taken as they are", "[resume]") {
  Json more = three_cells;
  more["d"] = {{"length", 32}};
  const Bench bench(more, 1);
  const Finished run = bench.run("--reuse " + measured().folder());
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err, Contains("3 of 4 cells"));
  const auto before = measured().cells();
  auto now = bench.cells();
  for (const char* label : {"a", "b", "c"}) {
    CHECK(measured_of(now[label]) == measured_of(before.at(label)));
    CHECK(now[label]["reused_from"] == measured().folder());
  }
  CHECK(was_measured(now["d"]));
  CHECK_FALSE(now["d"].contains("reused_from"));
}

TEST_CASE("two runs cannot have one folder", "[resume][processes]") {
  const Bench bench({{"a", Json::object()}, {"b", {{"how", "hang"}}}}, 1);
  Running first(bench.command("--cell-timeout 600"), bench / "output");
  REQUIRE(wait_until([&] { return child_of(first) > 0 && bench.records().size() == 1; }));
  const Finished second = bench.resume();
  CHECK(second.exit_code == 2);
  CHECK_THAT(second.err, Contains("another attnbench is writing to " + bench.folder()));
  const Finished third = bench.run();
  CHECK(third.exit_code == 2);
  CHECK_THAT(third.err, Contains("--resume"));
  CHECK(bench.records().size() == 1);
  first.signal(SIGINT);
  CHECK(first.wait() == 130);
}

TEST_CASE("run refuses what it cannot do, and leaves no file behind", "[resume]") {
  const Bench bench(three_cells);
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"--jobs 2", "one at a time"},
      {"--shard 3/2", "I/N"},
      {"--memory-limit much", "512M"},
      {"--retry sometimes", "out_of_memory"},
      {"--fail-on never", "unsupported"},
      {"--resume /nowhere", "/nowhere"},
      {"--only nothing_at_all", "--only"},
      {"--budget 3x", "60s"},
      {"--budget 60s --rounds 2", "leave out --rounds"}};
  for (const auto& [flags, message] : wrong) {
    const Finished run = bench.run(flags);
    INFO(flags << "\n" << run.err);
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, Contains(message));
    CHECK_FALSE(std::filesystem::exists(bench.folder()));
  }
}

TEST_CASE("watch shows the table of a run from its journal", "[program]") {
  const Finished seen = run({program(), "watch", measured().folder()});
  INFO(seen.err);
  CHECK(seen.exit_code == 0);
  CHECK_THAT(seen.out, Contains("kernel") &&
                           Contains("3 cells, 3 rounds so far; nobody measures") &&
                           !Contains("…") && !Contains("\x1b"));
  const Finished none = run({program(), "watch", "/nowhere"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, Contains("/nowhere"));
}
