// attnbench schema: the forms of results and suites, for users.
#include <nlohmann/json.hpp>

#include "core/schema/schema_validator.hpp"
#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

test::Finished schema_of(const std::string& name) {
  return test::run({test::program(), "schema", name}, 60, {});
}

}  // namespace

TEST_CASE("the schema of results is the one that results are held to", "[schema]") {
  const test::Finished printed = schema_of("result");
  CHECK(printed.exit_code == 0);
  const std::string copy = test::source_folder() + "/python/src/attnbench/result.schema.json";
  INFO(copy << ": .ci/fix writes it anew");
  CHECK((Json::parse(test::read_file(copy)) == Json::parse(printed.out)));
  const schema::SchemaValidator validator(Json::parse(printed.out));
  const Json stored = Json::parse(
      test::read_file(test::source_folder() + "/tests/reports/fixtures/quickstart.json"));
  CHECK_FALSE(validator.misfit(stored));
  Json broken = stored;
  broken["attnbench"]["cells"][0]["status"] = "fine";
  const auto misfit = validator.misfit(broken);
  REQUIRE(misfit);
  CHECK(misfit->pointer == "/attnbench/cells/0/status");
}

TEST_CASE("the schema of shapes takes those that are here", "[schema]") {
  const test::Finished printed = schema_of("shapes");
  CHECK(printed.exit_code == 0);
  const schema::SchemaValidator validator(Json::parse(printed.out));
  Json shapes = Json::parse(test::read_file(test::source_folder() + "/suites/shapes.json"));
  CHECK_FALSE(validator.misfit(shapes));
  shapes["gpt2"]["heads"] = 0;
  CHECK(validator.misfit(shapes)->pointer == "/gpt2/heads");
}

TEST_CASE("the schema of suites takes the suites that are here", "[schema]") {
  const test::Finished printed = schema_of("suite");
  CHECK(printed.exit_code == 0);
  const schema::SchemaValidator validator(Json::parse(printed.out));
  CHECK_FALSE(validator.misfit(
      Json::parse(test::read_file(test::source_folder() + "/suites/quickstart.json"))));
  CHECK(validator.misfit(Json{{"name", 3}}));
}

TEST_CASE("a schema of something else is refused, with what there is", "[schema]") {
  const test::Finished refused = schema_of("plugin");
  CHECK(refused.exit_code == 2);
  CHECK(refused.out.empty());
  CHECK_THAT(refused.err, Catch::Contains("result") && Catch::Contains("suite"));
}
