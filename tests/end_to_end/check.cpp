// attnbench check, as a user runs it.
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

TEST_CASE("check holds an implementation to its properties, and says what it does not do",
          "[program][check]") {
  const TemporaryFolder folder;
  const std::string file = folder / "check.json", report = folder / "check.md";
  const Finished finished =
      call("check linear --implementation scan --dtype float32 --no-growth --out " + file +
           " --out " + report);
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out, Contains("linear scan") && Contains("closest: ") &&
                               Contains("unsupported: linear") && Contains("all properties hold"));
  const Json document = Json::parse(read_file(file));
  int held = 0;
  for (const Json& row : document.at("checks")) {
    if (row.at("status") == "unsupported") continue;
    ++held;
    CHECK(row.at("status") == "ok");
    CHECK(row.at("broken") == 0);
    CHECK(row.at("held").get<int>() >= 12);
  }
  CHECK(held >= 1);
  CHECK(document.at("verdict") == "all properties hold");
  CHECK(document.at("mechanisms").size() == 1);
  CHECK(document.at("stamp").contains("torch"));
  CHECK_FALSE(document.at("machine").contains("devices"));  // the processor is no card
  CHECK_THAT(read_file(report),
             Catch::StartsWith("# attnbench check: all properties hold\n\n## linear\n") &&
                 Contains("| linear | scan | causal | float32 | ok |") &&
                 Contains("## Not applicable") && Contains("    attnbench check linear ") &&
                 Contains("\n- machine: "));
}

TEST_CASE("check refuses formats and names that it does not know, before it checks",
          "[program][check]") {
  const TemporaryFolder folder;
  for (const auto& [line, complaint] :
       std::map<std::string, std::string>{{"linear --out " + (folder / "check.txt").string(),
                                           "check.txt: expected a file that ends in .md or .json"},
                                          {"linear --out x --format pdf", "pdf"},
                                          {"sofmax", "softmax"}}) {
    const Finished finished = call("check " + line);
    INFO(line << "\n" << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains(complaint));
    CHECK(finished.out.empty());
  }
}

TEST_CASE("check that could hold nothing does not say that all holds", "[program][check]") {
  const TemporaryFolder folder;
  const std::string file = folder / "check.json";
  const Finished finished =
      call("check linear --implementation scan --pattern bidirectional --out " + file);
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 2);
  CHECK_THAT(finished.out, Contains("unsupported: linear") && !Contains("all properties hold") &&
                               !Contains("growth of"));  // nor waits for quiet to measure nothing
  CHECK_THAT(finished.err, Contains("attnbench: nothing could be compared"));
  CHECK_THAT(read_file(file), Contains("nothing could be compared") && !Contains("memory_ladder"));
}
