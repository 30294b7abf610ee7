// attnbench check, as a user runs it.
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench::test;
using Json = nlohmann::json;

TEST_CASE("check holds linear attention to its properties", "[program][check]") {
  const TemporaryFolder folder;
  const std::string file = folder / "check.json";
  const Finished finished =
      run({program(), "check", "linear", "--pattern", "causal", "--dtype", "float32", "--no-growth",
           "--out", file, "--out", folder / "check.md"});
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out, Catch::Contains("linear chunked") && Catch::Contains("closest: ") &&
                               Catch::Contains("all properties hold"));
  const Json document = Json::parse(read_file(file));
  CHECK(document.at("checks").size() >= 3);
  for (const Json& row : document.at("checks")) {
    CHECK(row.at("status") == "ok");
    CHECK(row.at("broken") == 0);
    CHECK(row.at("held").get<int>() >= 12);
  }
  CHECK(document.at("verdict") == "all properties hold");
  CHECK(document.at("mechanisms").size() == 1);
  CHECK(document.at("stamp").contains("torch"));
  const std::string page = read_file(folder / "check.md");
  CHECK_THAT(page, Catch::StartsWith("# attnbench check: all properties hold\n\n## linear\n") &&
                       Catch::Contains("| linear | chunked | causal | float32 | ok |") &&
                       Catch::Contains("## Not applicable") &&
                       Catch::Contains("    attnbench check linear --pattern causal") &&
                       Catch::Contains("\n- machine: "));
  CHECK_FALSE(document.at("machine").contains("devices"));  // the processor is no card
}

TEST_CASE("check refuses a file that tells no format, before it checks", "[program][check]") {
  const TemporaryFolder folder;
  const Finished finished = run({program(), "check", "linear", "--out", folder / "check.txt"});
  CHECK(finished.exit_code == 2);
  CHECK_THAT(finished.err, Catch::Contains("check.txt: expected a file that ends in .md or .json"));
  CHECK(finished.out.empty());
  CHECK(run({program(), "check", "linear", "--out", "x", "--format", "pdf"}).exit_code == 2);
}

TEST_CASE("check refuses names it does not know", "[program][check]") {
  const Finished finished = run({program(), "check", "sofmax"});
  CHECK(finished.exit_code == 2);
  CHECK_THAT(finished.err, Catch::Contains("softmax"));
  CHECK(finished.out.empty());
}

TEST_CASE("check says what an implementation does not do, and that is no failure",
          "[program][check]") {
  const Finished finished = run({program(), "check", "linear", "--implementation", "scan",
                                 "--dtype", "float32", "--no-growth"});
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out,
             Catch::Contains("unsupported: linear") && Catch::Contains("all properties hold"));
}

TEST_CASE("check that could hold nothing does not say that all holds", "[program][check]") {
  const TemporaryFolder folder;
  const Finished finished =
      run({program(), "check", "linear", "--implementation", "scan", "--pattern", "bidirectional",
           "--no-growth", "--out", folder / "check.json"});
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 2);
  CHECK_THAT(finished.out, Catch::Contains("unsupported: linear") &&
                               !Catch::Contains("all properties hold"));
  CHECK_THAT(finished.err, Catch::Contains("attnbench: nothing could be compared"));
  CHECK_THAT(read_file(folder / "check.json"), Catch::Contains("nothing could be compared"));
}
