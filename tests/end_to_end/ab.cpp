// attnbench ab, as a user runs it. What is faster is no test's business: see
// tests/harness/program/compare/paired.cpp.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/end_to_end/ab_bench.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

TEST_CASE("ab measures in turns, judges, and leaves a run behind", "[program][ab]") {
  const Ab ab;
  const Finished finished =
      ab("softmax/composite flash --length 16,32 --rounds 2 --pattern causal");
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 4);  // two rounds cannot tell
  CHECK_THAT(finished.out, Contains("base  softmax/composite\nnew   flash\n") &&
                               Contains("kernel length=16 forward") && Contains("UNCLEAR") &&
                               (Contains("2 rounds give no interval; --rounds 7 would") ||
                                Contains("rounds were preempted")) &&
                               Contains("result  ") && Contains("page    "));
  const Json verdicts = ab.read("ab.json");
  CHECK(verdicts["turns"]["new"] == "flash");
  REQUIRE(verdicts["pairs"].size() == 2);
  const Json& pair = verdicts["pairs"][0];
  if (pair.contains("ratio")) CHECK(pair["ratio"].get<double>() > 0);  // not where all is disturbed
  CHECK(ab.read("result.json")["attnbench"]["cells"].size() == 6);
  CHECK_THAT(read_file(ab.folder / "run/index.html"), Contains("softmax/composite, again"));

  // A B A' of each length, then all of it from the end.
  std::vector<std::string> first, second;
  std::ifstream journal(ab.folder / "run/journal.jsonl");
  for (std::string line; std::getline(journal, line);) {
    const Json record = Json::parse(line);
    if (record.value("type", "") != "record") continue;
    (record["round"] == 0 ? first : second).push_back(record["cell"]);
  }
  REQUIRE(first.size() == 6);
  std::reverse(second.begin(), second.end());
  CHECK(first == second);
}

TEST_CASE("ab measures two builds of a plugin side by side", "[program][ab]") {
  const Ab ab;
  const std::string plugin = misbehave_plugin();
  const Finished finished =
      ab("misbehave misbehave_new --length 8 --rounds 1 --json --no-report --plugin " + plugin +
         " --plugin new=" + plugin);
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 4);
  CHECK(Json::parse(finished.out)["turns"]["new"] == "misbehave_new");
  CHECK(Json::parse(finished.out)["folder"] == ab.out());
  for (const auto& [label, cell] : cells_of(ab.out())) CHECK(was_measured(cell));

  const Finished nothing =
      call("list mechanisms --plugin new=" + test::build_folder() + "/lib/libcopying.so");
  CHECK_THAT(nothing.err, Contains("no mechanism to be called by another name"));
}

TEST_CASE("ab ends with 5 where a side crashes, with 1 where it is wrong, with 4 where it cannot",
          "[program][ab]") {
  const std::vector<std::tuple<std::string, int, std::string>> cases{
      {"segfault", 5, "new: crashed"},
      {"wrong", 1, "new: wrong"},
      {"unsupported", 4, "new: unsupported"}};
  for (const auto& [how, code, reason] : cases) {
    const Ab ab;
    // softmax has no option how: it stays as it is.
    const Finished finished =
        ab("softmax misbehave --length 8 --rounds 1 --no-report --set how=" + how + " --plugin " +
           misbehave_plugin());
    INFO(how << "\n" << finished.out << finished.err);
    CHECK(finished.exit_code == code);
    CHECK_THAT(finished.out,
               (Contains("base: ok; ") || Contains("base: disturbed")) && Contains(reason));
  }
}

TEST_CASE("ab refuses what is no pair", "[program][ab]") {
  const std::string sides = "softmax flash ";
  const std::vector<std::pair<std::string, std::string>> bad{
      {"", "it was given 0"},
      {"softmax", "it was given 1"},
      {"softmax flash latte", "it was given 3"},
      {"softmax softmax", "named twice"},
      {"softmax " + test::source_folder() + "/suites/decode.json", "is a suite"},
      {"softmax latt", "latte"},
      {"latte/scan latte/fast", "implementation of latte"},
      {"softmax python:none.py:None", "there is no file"},
      {sides + "--length none", "length"},
      {sides + "--margin 2", "--margin"},
      {sides + "--rounds 0", "--rounds"},
      {sides + "--marginn 0.1", "did you mean \"--margin\""},
      {sides + "--confidence 1", "--confidence"},
      {sides + "--absolute -1", "--absolute"},
      {sides + "--rounds-most 3", "fewer than the 12"},
      {sides + "--confirm 2", "confirm is 2"}};
  for (const auto& [line, complaint] : bad) {
    const Ab ab;
    const Finished finished = ab(line);
    INFO(complaint << "\n" << finished.out << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains(complaint));
    CHECK_FALSE(std::filesystem::exists(ab.out()));
  }
}
