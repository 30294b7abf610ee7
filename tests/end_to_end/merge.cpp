// Shards of a run, and what becomes of them together. Which may be merged is in
// tests/harness/program/run/folder/merge.cpp.
#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

TEST_CASE("shards share the cells without overlap, and are merged into the result of one run",
          "[merge]") {
  Json entries = Json::object();
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) entries[name] = Json::object();
  const Bench bench(entries, 1);
  const auto run_shard = [&](const std::string& shard, const std::string& out,
                             const std::string& more = {}) {
    const Finished run = call("run " + bench.suite() + " --plugin " + misbehave_plugin() +
                              " --no-ceilings --no-report --progress plain --shard " + shard +
                              " --out " + (bench / out).string() + " " + more);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
  };
  const auto merge = [&](const std::string& runs, const std::string& more = "--no-report") {
    std::string line = "merge " + more + " --out " + (bench / "merged").string();
    for (const std::string& run : words(runs)) line += " " + (bench / run).string();
    return call(line);
  };
  run_shard("1/3", "one");
  run_shard("2/3", "two");
  run_shard("3/3", "three");
  run_shard("3/3", "seed", "--seed 5");
  std::map<std::string, int> seen;
  for (const char* shard : {"one", "two", "three"}) {
    for (const auto& [label, cell] : cells_of(bench / shard)) seen[label] += was_measured(cell);
  }
  CHECK(seen.size() == 6);
  for (const auto& [label, count] : seen) CHECK(count == 1);

  // A run that was killed leaves its worker.
  const auto left = bench / "one/.attnbench-worker-0";
  write_file(left / "bin/attnbench-worker", "left");
  const Finished merged = merge("one two three", "");
  CHECK_FALSE(std::filesystem::exists(left));
  INFO(merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(std::filesystem::exists(bench / "merged/index.html"));
  CHECK(std::filesystem::exists(bench / "merged/tables/result.csv"));
  const auto stored = [&] { return stored_result(bench / "merged/result.json").at("attnbench"); };
  std::vector<std::string> labels;
  const Json result = stored();
  for (const Json& cell : result["cells"]) labels.push_back(cell["label"]);
  CHECK(labels == std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
  CHECK(result["run"]["merged"].size() == 3);
  // It may be repeated; another result is not replaced.
  CHECK(merge("one two three").exit_code == 0);
  const std::string one = bench / "one";
  const Finished over = call("merge " + one + " " + (bench / "two").string() + " --out " + one);
  CHECK(over.exit_code == 2);
  CHECK_THAT(over.err, Contains("no merged result"));

  const Finished missing = merge("one two");
  CHECK(missing.exit_code == 5);
  CHECK_THAT(missing.err, Contains("missing:\n  kernel  "));
  CHECK(merge("one").exit_code == 2);
  CHECK(merge("").exit_code == 2);
  CHECK(merge("one nowhere").exit_code == 2);
  const Finished other = merge("one seed");
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, Contains("seed: 0 in ") && Contains(", 5 in "));
  CHECK(merge("one two seed", "--no-report --force").exit_code == 0);
  CHECK_THAT(stored()["run"]["forced"][0].get<std::string>(), Contains("seed"));
}
