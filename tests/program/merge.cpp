#include "tests/program/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench::test;

namespace {

/// Six cells, which both shards of two have some of.
Json six_entries() {
  Json entries = Json::object();
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) entries[name] = Json::object();
  return entries;
}

Finished run_shard(const Bench& bench, const std::string& shard, const std::string& out,
                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{program(),
                                 "run",
                                 bench.suite(),
                                 "--out",
                                 bench / out,
                                 "--plugin",
                                 misbehave_plugin(),
                                 "--no-ceilings",
                                 "--no-report",
                                 "--progress",
                                 "plain",
                                 "--shard",
                                 shard};
  words.insert(words.end(), more.begin(), more.end());
  return bench.run(words);
}

Finished run_merge(const Bench& bench, const std::vector<std::string>& runs,
                   const std::vector<std::string>& more = {"--no-report"}) {
  std::vector<std::string> words{program(), "merge", "--out", bench / "merged"};
  for (const std::string& run : runs) words.push_back(bench / run);
  words.insert(words.end(), more.begin(), more.end());
  return bench.run(words);
}

}  // namespace

TEST_CASE("two shards are merged into the result of one run", "[merge]") {
  const Bench bench(six_entries(), 1);
  REQUIRE(run_shard(bench, "1/2", "one").exit_code == 0);
  REQUIRE(run_shard(bench, "2/2", "two").exit_code == 0);
  const Finished merged = run_merge(bench, {"one", "two"}, {});
  INFO(merged.err);
  CHECK(merged.exit_code == 0);
  CHECK(std::filesystem::exists(bench / "merged/index.html"));
  CHECK(std::filesystem::exists(bench / "merged/tables/result.csv"));
  const Json result = stored_result(bench / "merged/result.json");
  std::vector<std::string> labels;
  for (const Json& cell : result["attnbench"]["cells"]) labels.push_back(cell["label"]);
  CHECK(labels == std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
  CHECK(result["attnbench"]["run"]["merged"].size() == 2);
  // It may be repeated; another result is not replaced.
  CHECK(run_merge(bench, {"one", "two"}).exit_code == 0);
  const Finished over =
      bench.run({program(), "merge", bench / "one", bench / "two", "--out", bench / "one"});
  CHECK(over.exit_code == 2);
  CHECK_THAT(over.err, Catch::Contains("no merged result"));
}

TEST_CASE("merge refuses what does not belong together and lists what is missing", "[merge]") {
  const Bench bench(six_entries(), 1);
  REQUIRE(run_shard(bench, "1/3", "one").exit_code == 0);
  REQUIRE(run_shard(bench, "2/3", "two").exit_code == 0);
  const Finished missing = run_merge(bench, {"one", "two"});
  CHECK(missing.exit_code == 5);
  CHECK_THAT(missing.err, Catch::Contains("missing:\n  kernel  "));
  CHECK(run_merge(bench, {"one"}).exit_code == 2);
  CHECK(run_merge(bench, {}).exit_code == 2);
  CHECK(run_merge(bench, {"one", "nowhere"}).exit_code == 2);
  REQUIRE(run_shard(bench, "3/3", "seed", {"--seed", "5"}).exit_code == 0);
  const Finished other = run_merge(bench, {"one", "seed"});
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, Catch::Contains("seed: 0 in ") && Catch::Contains(", 5 in "));
  CHECK(run_merge(bench, {"one", "two", "seed"}, {"--no-report", "--force"}).exit_code == 0);
  const Json result = stored_result(bench / "merged/result.json");
  CHECK_THAT(result["attnbench"]["run"]["forced"][0].get<std::string>(), Catch::Contains("seed"));
  // The same cells, measured once more.
  REQUIRE(run_shard(bench, "1/3", "again").exit_code == 0);
  const Finished twice = run_merge(bench, {"one", "again"});
  CHECK(twice.exit_code == 2);
  CHECK_THAT(twice.err, Catch::Contains("measured twice"));
}
