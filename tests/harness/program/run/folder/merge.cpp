#include "harness/program/run/folder/merge.hpp"

#include "core/cell.hpp"
#include "core/failure.hpp"
#include "core/result/machines.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using result::CellRecord;
using run::MergeChoices;
using run::Share;
using Ids = std::vector<std::string>;

namespace {

CellRecord merge_cell(const std::string& id, double seconds) {
  test::CellBuilder cell("latte");
  cell.named(id).length(1024).rounds({seconds});
  cell.timing["forward"].rounds[0].samples_seconds = {seconds};
  return cell;
}

/// One that its run ended before.
CellRecord unmeasured(const std::string& id) {
  return test::CellBuilder("latte").named(id).length(1024).ended(
      Status::skipped, "the run ended before this cell was measured");
}

/// A shard of three with these cells.
Share shard(int index, std::vector<CellRecord> cells) {
  result::Result made;
  made.suite.name = "s";
  made.suite.hash = "h1";
  made.suite.profile = "quick";
  made.run.seed = 7;
  made.run.threads = 2;
  made.run.state = "complete";
  made.run.started_at = "2026-01-0" + std::to_string(index) + "T00:00:00Z";
  made.run.finished_at = "2026-01-0" + std::to_string(index) + "T01:00:00Z";
  made.run.wall_seconds = 10;
  made.run.shard = result::ShardInfo{index, 3};
  made.machine.host = "one";
  made.machine.cpu_model = "c";
  made.provenance.binary = "b1";
  made.cells = std::move(cells);
  return {std::string(1, static_cast<char>('A' + index - 1)), made, {}};
}

std::vector<Share> three_shards() {
  return {shard(1, {merge_cell("b", 1)}), shard(2, {merge_cell("a", 2)}), shard(3, {})};
}

/// What a journal says of the suite: its cells, in this order.
run::JournalHeader header_of(const Ids& ids) {
  run::JournalHeader header;
  header.suite = {{"name", "s"}, {"hash", "h1"}, {"profile", "quick"}};
  header.seed = 7;
  header.identity = {{"binary", "b1"}};
  for (const std::string& id : ids) {
    Cell cell;
    cell.id = id;
    cell.label = cell.mechanism = "latte";
    cell.task = cell.task_label = "kernel";
    cell.settings = {{"length", std::int64_t{1024}}};
    header.cells.push_back(Json(cell).get<Values>());
  }
  return header;
}

std::string refusal_of(const std::vector<Share>& shares, bool force = false) {
  MergeChoices choices;
  choices.force = force;
  try {
    run::merge(shares, choices);
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return "";
}

Ids ids_of(const result::Result& result) {
  Ids ids;
  for (const auto& cell : result.cells) ids.push_back(cell.id);
  return ids;
}

}  // namespace

TEST_CASE("shards become one result in the suite's order", "[merge]") {
  std::vector<Share> shares = three_shards();
  shares[2].header = header_of({"a", "b"});
  const run::Merged merged = run::merge(shares, {});
  CHECK(merged.missing.empty());
  CHECK(ids_of(merged.result) == Ids{"a", "b"});
  const result::RunInfo& run = merged.result.run;
  CHECK(run.state == "complete");
  CHECK(run.started_at == "2026-01-01T00:00:00Z");
  CHECK(run.finished_at == "2026-01-03T01:00:00Z");
  CHECK(run.wall_seconds == 30);
  CHECK_FALSE(run.shard);
  CHECK(run.forced.empty());
  REQUIRE((run.merged && run.merged->size() == 3));
  CHECK(run.merged->at(1).source == "B");
  CHECK(run.merged->at(1).shard == result::ShardInfo{2, 3});
  CHECK(merged.result.benchmarks.size() == 2);  // rows of both cells
  CHECK(result::by_machine(merged.result).size() == 1);
  shares[0].result->run.wall_seconds.reset();
  CHECK_FALSE(run::merge(shares, {}).result.run.wall_seconds);
}

TEST_CASE("runs of another suite, binary, seed or profile are refused with both values",
          "[merge]") {
  const auto refused_with = [](auto change) {
    std::vector<Share> shares = three_shards();
    change(*shares[1].result);
    MergeChoices force;  // forced, the result says what differs
    force.force = true;
    const run::Merged merged = run::merge(shares, force);
    CHECK(merged.forced.size() == 1);
    CHECK(merged.result.run.forced == merged.forced);
    return refusal_of(shares);
  };
  CHECK_THAT(refused_with([](auto& other) { other.suite.hash = "h2"; }),
             Catch::Contains("hash of the suite: h1 in A, h2 in B"));
  CHECK_THAT(refused_with([](auto& other) { other.suite.name = "t"; }),
             Catch::Contains("suite: s in A, t in B"));
  CHECK_THAT(refused_with([](auto& other) { other.suite.profile = "full"; }),
             Catch::Contains("profile: quick in A, full in B"));
  CHECK_THAT(refused_with([](auto& other) { other.provenance.binary = "b2"; }),
             Catch::Contains("binary: b1 in A, b2 in B"));
  CHECK_THAT(refused_with([](auto& other) { other.run.seed = 8; }),
             Catch::Contains("seed: 7 in A, 8 in B"));
}

TEST_CASE("a cell of two runs counts once where it is the same", "[merge]") {
  std::vector<Share> shares = three_shards();
  CellRecord same = merge_cell("b", 1);
  same.reproduce = "attnbench run s --only b";
  shares[1] = shard(2, {same});
  CHECK(ids_of(run::merge(shares, {}).result) == Ids{"b"});
  shares[1] = shard(2, {merge_cell("b", 1.5)});
  CHECK_THAT(refusal_of(shares), Catch::Contains("the cell b") && Catch::Contains("in A and in B"));
  // Forced: which of the two would be the result?
  CHECK_THAT(refusal_of(shares, true), Catch::Contains("measured twice"));
}

TEST_CASE("a run that ended before a cell leaves it to another", "[merge]") {
  std::vector<Share> shares = three_shards();
  shares[1] = shard(2, {unmeasured("b")});
  for (int turn = 0; turn < 2; ++turn) {
    const run::Merged merged = run::merge(shares, {});
    CHECK(merged.missing.empty());
    REQUIRE(merged.result.cells.size() == 1);
    CHECK(merged.result.cells[0].status == Status::ok);
    std::swap(shares[0], shares[1]);
  }
  shares = three_shards();
  shares[0] = shard(1, {unmeasured("b")});
  const run::Merged merged = run::merge(shares, {});
  CHECK(merged.missing == Ids{"latte  [b]"});
  CHECK(merged.result.run.state == "stopped");
}

TEST_CASE("cells and shards that no run has are listed, a killed run is named", "[merge]") {
  std::vector<Share> shares = three_shards();
  shares[0].header = header_of({"c", "a", "b"});
  run::Merged merged = run::merge(shares, {});
  REQUIRE(merged.missing.size() == 1);
  CHECK_THAT(merged.missing[0], Catch::Contains("latte") && Catch::Contains("[c]"));
  CHECK(ids_of(merged.result) == Ids{"c", "a", "b"});
  CHECK(merged.result.cells[0].status == Status::skipped);
  // Without journals a shard that nobody named is missing.
  CHECK(run::merge({three_shards()[0], three_shards()[2]}, {}).missing == Ids{"shard 2/3"});

  shares = three_shards();
  const Share killed{"K", {}, header_of({"a", "b", "k"})};
  shares.push_back(killed);
  merged = run::merge(shares, {});
  REQUIRE(merged.unfinished.size() == 1);
  CHECK_THAT(merged.unfinished[0], Catch::Contains("attnbench run --resume K"));
  CHECK(merged.missing.size() == 1);
  CHECK_THAT(refusal_of({killed, killed}), Catch::Contains("none of the runs has a result"));
}

TEST_CASE("one run, or none, cannot be merged", "[merge]") {
  CHECK_THAT(refusal_of({}), Catch::Contains("no run"));
  CHECK_THAT(refusal_of({three_shards()[1]}), Catch::Contains("shard 2 of 3"));
  Share whole = three_shards()[0];
  whole.result->run.shard.reset();
  CHECK_THAT(refusal_of({whole}), Catch::Contains("one run"));
}

TEST_CASE("machines are kept apart, and hosts of one kind on request are not", "[merge]") {
  std::vector<Share> shares = three_shards();
  result::Result& other = *shares[1].result;
  other.machine.host = "two";
  other.ceilings["cpu"] = {{"gemm_float32_flops_per_second", 5}};
  const run::Merged merged = run::merge(shares, {});
  const std::vector<result::Result> parts = result::by_machine(merged.result);
  REQUIRE(parts.size() == 2);
  CHECK(ids_of(parts[0]) == Ids{"b"});
  CHECK(ids_of(parts[1]) == Ids{"a"});
  CHECK(parts[1].machine.host == "two");
  CHECK(parts[1].ceilings_of("cpu").size() == 1);
  CHECK(parts[0].ceilings_of("cpu").empty());
  CHECK(*parts[1].suite.title == "s, on two");
  CHECK(parts[1].run.started_at == "2026-01-02T00:00:00Z");

  MergeChoices alike;
  alike.alike = true;
  CHECK(result::by_machine(run::merge(shares, alike).result).size() == 1);
  other.run.threads = 4;
  CHECK(result::by_machine(run::merge(shares, alike).result).size() == 2);
}

TEST_CASE("what is neither a run nor a result is no share", "[merge]") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(run::read_share(folder.path()), UsageFailure);
  CHECK_THROWS_AS(run::read_share(folder / "nowhere"), UsageFailure);
  result::write_result(folder / "result.json", *three_shards()[0].result);
  test::write_file(folder / "journal.jsonl", "not a journal\n");
  const Share share = run::read_share(folder.path());  // the result counts all the same
  CHECK(share.result);
  CHECK_FALSE(share.header);
}
