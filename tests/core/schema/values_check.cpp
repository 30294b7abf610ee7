#include "core/schema/values_check.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using attnbench::result::find_misfit;
using Json = nlohmann::json;

TEST_CASE("a key has the same kind of value wherever it stands", "[result]") {
  CHECK_FALSE(find_misfit({{"mechanism", "latte"}, {"steps", 3}, {"problem", {{"heads", 2}}}}));
  const auto found = find_misfit({{"problem", {{"heads", "two"}}}});
  REQUIRE(found);
  CHECK(found->pointer == "/problem/heads");
  CHECK(found->expected == "a number");
}

TEST_CASE("parts that are counted may be called as anything else is", "[result]") {
  const Json counted = {{"mechanism", 64}, {"device", 7}};
  CHECK_FALSE(find_misfit({{"parameters", counted}, {"state_bytes", counted}}));
  CHECK(find_misfit({{"parameters", {{"mechanism", "many"}}}}));
}
