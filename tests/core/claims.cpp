#include "core/claims_json.hpp"

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("costs that are not finite are left out, and not known when they are read", "[claims]") {
  Cost cost;
  cost.model_flops = 12;
  cost.saved_bytes = std::numeric_limits<double>::infinity();
  cost.exponentials = std::numeric_limits<double>::quiet_NaN();
  const Json written = cost;
  CHECK(written == Json{{"model_flops", 12.0},
                        {"executed_flops", 0.0},
                        {"minimal_bytes", 0.0},
                        {"workspace_bytes", 0.0},
                        {"state_bytes", 0.0}});
  const auto read = written.get<Cost>();
  CHECK(read.model_flops == 12);
  CHECK(std::isnan(read.saved_bytes));
  CHECK(known_or_zero(read.saved_bytes) == 0);
  CHECK(known_or_zero(read.model_flops) == 12);
  CHECK_THROWS_WITH(Json({{"model_flops", "many"}}).get<Cost>(),
                    Catch::Matchers::Contains("/model_flops: expected a number"));
  CHECK_THROWS_WITH(Json({{"model_flop", 1}}).get<Cost>(),
                    Catch::Matchers::Contains("did you mean \"model_flops\""));
}

TEST_CASE("an exponent that is not claimed stays so", "[claims]") {
  Growth growth;
  growth.time_in_length = 2;
  growth.workspace_in_length = std::numeric_limits<double>::quiet_NaN();
  const auto read = Json(growth).get<Growth>();
  CHECK(claimed_exponent(read, "time_in_length") == 2.0);
  CHECK(claimed_exponent(read, "time_in_latents") == 0.0);
  CHECK_FALSE(claimed_exponent(read, "workspace_in_length"));
  CHECK_FALSE(claimed_exponent(read, "workspace_in_head_dim"));
  CHECK_FALSE(claimed_exponent(read, "time_in_batch"));
  growth.workspace_in_head_dim = 1;
  growth.from_length = 512;
  CHECK(claimed_exponent(Json(growth).get<Growth>(), "workspace_in_head_dim") == 1.0);
  CHECK(Json(growth).at("from_length") == 512);
  CHECK_FALSE(Json(Growth{}).contains("from_length"));
}
