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
  const Finished finished = run({program(), "check", "linear", "--pattern", "causal", "--dtype",
                                 "float32", "--no-growth", "--json", file});
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
                                 "--pattern", "bidirectional", "--no-growth"});
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 0);
  CHECK_THAT(finished.out, Catch::Contains("unsupported: linear"));
}
