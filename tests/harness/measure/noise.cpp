#include "harness/measure/noise.hpp"

#include "tests/support/catch.hpp"

TEST_CASE("the noise self-test compares a piece of work with itself", "[noise]") {
  const auto noise = attnbench::measure::noise_self_test(1);
  CHECK(noise.median_seconds > 0);
  CHECK(noise.spread >= 0);
  CHECK(noise.difference >= 0);
  // Two halves of the same work cannot be apart by more than all of it is wide, save for ties.
  CHECK(noise.difference <= noise.spread + 1.0);
}
