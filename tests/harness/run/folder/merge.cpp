#include "harness/run/folder/merge.hpp"

#include "core/failure.hpp"
#include "core/result/machines.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/timed_cell.hpp"

using namespace attnbench;
using run::MergeChoices;
using run::Share;
using Json = nlohmann::json;

namespace {

Json merge_cell(const std::string& id, double seconds) {
  Json cell = test::timed_cell(id, "latte", seconds);
  const Json round = {{"median_seconds", seconds}, {"samples_seconds", {seconds}}};
  cell["timing"]["forward"]["rounds"].push_back(round);
  return cell;
}

/// A shard of three with these cells.
Json shard_json(int index, const Json& cells) {
  return {{"context", Json::object()},
          {"benchmarks", Json::array()},
          {"attnbench",
           {{"schema", 1},
            {"suite", {{"name", "s"}, {"hash", "h1"}, {"profile", "quick"}}},
            {"run",
             {{"seed", 7},
              {"threads", 2},
              {"state", "complete"},
              {"started_at", "2026-01-0" + std::to_string(index) + "T00:00:00Z"},
              {"finished_at", "2026-01-0" + std::to_string(index) + "T01:00:00Z"},
              {"wall_seconds", 10},
              {"shard", {{"index", index}, {"count", 3}}}}},
            {"machine", {{"host", "one"}, {"cpu_model", "c"}}},
            {"ceilings", Json::object()},
            {"provenance", {{"binary", "b1"}}},
            {"cells", cells}}}};
}

Share share_of(const Json& json, const std::string& source) {
  Share share;
  share.source = source;
  share.result = json.get<result::Result>();
  return share;
}

Json planned_cell_json(const std::string& id) {
  return {{"id", id},
          {"label", "latte"},
          {"task", "kernel"},
          {"task_label", "kernel"},
          {"mechanism", "latte"},
          {"implementation", "auto"},
          {"device", "cpu"},
          {"options", Json::object()},
          {"settings", {{"length", 1024}}}};
}

/// What a journal says of the suite: its cells, in this order.
run::JournalHeader header_of(const std::vector<std::string>& ids) {
  run::JournalHeader header;
  header.suite = {{"name", "s"}, {"hash", "h1"}, {"profile", "quick"}};
  header.seed = 7;
  header.identity = {{"binary", "b1"}};
  for (const std::string& id : ids) header.cells.push_back(planned_cell_json(id));
  return header;
}

std::vector<Share> three_shards() {
  return {share_of(shard_json(1, Json::array({merge_cell("b", 1)})), "A"),
          share_of(shard_json(2, Json::array({merge_cell("a", 2)})), "B"),
          share_of(shard_json(3, Json::array()), "C")};
}

std::string refusal_of(const std::vector<Share>& shares, const MergeChoices& choices = {}) {
  try {
    run::merge(shares, choices);
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return "";
}

std::vector<std::string> ids_of(const result::Result& result) {
  std::vector<std::string> ids;
  for (const auto& cell : result.cells) ids.push_back(cell.id);
  return ids;
}

}  // namespace

TEST_CASE("shards become one result in the suite's order", "[merge]") {
  std::vector<Share> shares = three_shards();
  shares[2].header = header_of({"a", "b"});
  const run::Merged merged = run::merge(shares, {});
  CHECK(merged.missing.empty());
  CHECK(ids_of(merged.result) == std::vector<std::string>{"a", "b"});
  const result::RunInfo& run = merged.result.run;
  CHECK(run.state == "complete");
  CHECK(run.started_at == "2026-01-01T00:00:00Z");
  CHECK(run.finished_at == "2026-01-03T01:00:00Z");
  CHECK(*run.wall_seconds == 30);
  CHECK_FALSE(run.shard);
  CHECK(run.forced.empty());
  REQUIRE(run.merged);
  REQUIRE(run.merged->size() == 3);
  CHECK(run.merged->at(1).source == "B");
  CHECK(run.merged->at(1).shard == result::ShardInfo{2, 3});
  CHECK(merged.result.benchmarks.size() == 2);  // rows of both cells
  CHECK_FALSE(merged.result.further.contains("machines"));
}

TEST_CASE("runs of another suite, binary, seed or profile are refused with both values",
          "[merge]") {
  const auto refused_with = [](const std::string& part, const std::string& key, const Json& value) {
    std::vector<Share> shares = three_shards();
    Json other = shard_json(2, Json::array({merge_cell("a", 2)}));
    other["attnbench"][part][key] = value;
    shares[1] = share_of(other, "B");
    const std::string why = refusal_of(shares);
    // Forced, the result says what differs.
    MergeChoices force;
    force.force = true;
    const run::Merged merged = run::merge(shares, force);
    CHECK(merged.forced.size() == 1);
    CHECK(merged.result.run.forced == merged.forced);
    return why;
  };
  CHECK_THAT(refused_with("suite", "hash", "h2"),
             Catch::Contains("hash of the suite: h1 in A, h2 in B"));
  CHECK_THAT(refused_with("suite", "name", "t"), Catch::Contains("suite: s in A, t in B"));
  CHECK_THAT(refused_with("suite", "profile", "full"),
             Catch::Contains("profile: quick in A, full in B"));
  CHECK_THAT(refused_with("provenance", "binary", "b2"),
             Catch::Contains("binary: b1 in A, b2 in B"));
  CHECK_THAT(refused_with("run", "seed", 8), Catch::Contains("seed: 7 in A, 8 in B"));
}

TEST_CASE("a cell of two runs counts once where it is the same", "[merge]") {
  std::vector<Share> shares = three_shards();
  Json same = merge_cell("b", 1);
  same["reproduce"] = "attnbench run s --only b";
  shares[1] = share_of(shard_json(2, Json::array({same})), "B");
  CHECK(ids_of(run::merge(shares, {}).result) == std::vector<std::string>{"b"});

  shares[1] = share_of(shard_json(2, Json::array({merge_cell("b", 1.5)})), "B");
  CHECK_THAT(refusal_of(shares), Catch::Contains("the cell b") && Catch::Contains("in A and in B"));
  MergeChoices force;
  force.force = true;  // which of the two would be the result?
  CHECK_THAT(refusal_of(shares, force), Catch::Contains("measured twice"));
}

TEST_CASE("a run that ended before a cell leaves it to another", "[merge]") {
  Json ended = merge_cell("b", 1);
  ended.erase("timing");
  ended["status"] = "skipped";
  ended["reason"] = "the run ended before this cell was measured";
  std::vector<Share> shares = three_shards();
  shares[1] = share_of(shard_json(2, Json::array({ended})), "B");
  for (int turn = 0; turn < 2; ++turn) {
    const run::Merged merged = run::merge(shares, {});
    CHECK(merged.missing.empty());
    REQUIRE(merged.result.cells.size() == 1);
    CHECK(merged.result.cells[0].status == result::Status::ok);
    std::swap(shares[0], shares[1]);
  }
  shares = three_shards();
  shares[0] = share_of(shard_json(1, Json::array({ended})), "A");
  const run::Merged merged = run::merge(shares, {});
  CHECK(merged.missing == std::vector<std::string>{"latte  [b]"});
  CHECK(merged.result.run.state == "stopped");
}

TEST_CASE("cells that no run has are listed and skipped", "[merge]") {
  std::vector<Share> shares = three_shards();
  shares[0].header = header_of({"c", "a", "b"});
  const run::Merged merged = run::merge(shares, {});
  REQUIRE(merged.missing.size() == 1);
  CHECK_THAT(merged.missing[0], Catch::Contains("latte") && Catch::Contains("[c]"));
  CHECK(ids_of(merged.result) == std::vector<std::string>{"c", "a", "b"});
  CHECK(merged.result.cells[0].status == result::Status::skipped);
}

TEST_CASE("without journals a shard that nobody named is missing", "[merge]") {
  std::vector<Share> shares = three_shards();
  shares.erase(shares.begin() + 1);
  CHECK(run::merge(shares, {}).missing == std::vector<std::string>{"shard 2/3"});
}

TEST_CASE("a run that was killed before its result is named, and its cells are missing",
          "[merge]") {
  std::vector<Share> shares = three_shards();
  Share killed;
  killed.source = "K";
  killed.header = header_of({"a", "b", "k"});
  shares.push_back(killed);
  const run::Merged merged = run::merge(shares, {});
  REQUIRE(merged.unfinished.size() == 1);
  CHECK_THAT(merged.unfinished[0], Catch::Contains("attnbench run --resume K"));
  CHECK(merged.missing.size() == 1);
  CHECK_THAT(refusal_of({killed, killed}), Catch::Contains("none of the runs has a result"));
}

TEST_CASE("one run, or none, cannot be merged", "[merge]") {
  CHECK_THAT(refusal_of({}), Catch::Contains("no run"));
  CHECK_THAT(refusal_of({three_shards()[1]}), Catch::Contains("shard 2 of 3"));
  Json whole = shard_json(1, Json::array({merge_cell("a", 1)}));
  whole["attnbench"]["run"].erase("shard");
  CHECK_THAT(refusal_of({share_of(whole, "A")}), Catch::Contains("one run"));
}

TEST_CASE("machines are kept apart, and hosts of one kind on request are not", "[merge]") {
  std::vector<Share> shares = three_shards();
  Json other = shard_json(2, Json::array({merge_cell("a", 2)}));
  other["attnbench"]["machine"]["host"] = "two";
  other["attnbench"]["ceilings"] = {{"cpu", {{"gemm_float32_flops_per_second", 5}}}};
  shares[1] = share_of(other, "B");
  const run::Merged merged = run::merge(shares, {});
  CHECK(result::machine_of(merged.result.cells[0]) == "one");
  CHECK(result::machine_of(merged.result.cells[1]) == "two");
  const std::vector<result::Result> parts = result::by_machine(merged.result);
  REQUIRE(parts.size() == 2);
  CHECK(ids_of(parts[0]) == std::vector<std::string>{"b"});
  CHECK(ids_of(parts[1]) == std::vector<std::string>{"a"});
  CHECK(parts[1].machine.host == "two");
  CHECK(parts[1].ceilings_of("cpu").size() == 1);
  CHECK(parts[0].ceilings_of("cpu").empty());
  CHECK(*parts[1].suite.title == "s, on two");
  CHECK(parts[1].run.started_at == "2026-01-02T00:00:00Z");

  MergeChoices alike;
  alike.alike = true;
  CHECK(result::by_machine(run::merge(shares, alike).result).size() == 1);
  other["attnbench"]["run"]["threads"] = 4;
  shares[1] = share_of(other, "B");
  CHECK(result::by_machine(run::merge(shares, alike).result).size() == 2);
}

TEST_CASE("what is neither a run nor a result is no share", "[merge]") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(run::read_share(folder.path()), UsageFailure);
  CHECK_THROWS_AS(run::read_share(folder / "nowhere"), UsageFailure);
  test::write_file(folder / "result.json", shard_json(1, Json::array({merge_cell("a", 1)})).dump());
  test::write_file(folder / "journal.jsonl", "not a journal\n");
  const Share share = run::read_share(folder.path());  // the result counts all the same
  CHECK(share.result);
  CHECK_FALSE(share.header);
}
