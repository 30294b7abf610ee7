#include "harness/measure/memory_ladder.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace attnbench::measure;

TEST_CASE("a ladder has a rate at every rung, up to what was allowed", "[ladder]") {
  const auto ladder = memory_ladder(2, 3e6);
  REQUIRE(ladder.size() == 3);
  CHECK(ladder[0].bytes == 131072);
  CHECK(ladder[2].bytes == 2097152);
  for (const Rung& rung : ladder) {
    CHECK(rung.bytes_per_second > 0);
    CHECK(std::isfinite(rung.bytes_per_second));
  }
  CHECK(memory_ladder(1, 0).empty());
}

TEST_CASE("slower is read off the ladder, between rungs by the logarithm", "[ladder]") {
  const std::vector<Rung> ladder = {{1e3, 8e9}, {4e3, 4e9}, {16e3, 1e9}};
  CHECK(slowdown(ladder, 1e3, 4e3) == Approx(2));
  CHECK(slowdown(ladder, 1e3, 16e3) == Approx(8));
  CHECK(slowdown(ladder, 4e3, 8e3) == Approx(2));
  CHECK(slowdown(ladder, 1, 1e2) == Approx(1));
  CHECK(slowdown(ladder, 1, 1e9) == Approx(8));
  CHECK(slowdown(ladder, 16e3, 1e3) == 1);
  CHECK(slowdown({}, 1, 1e9) == 1);
}

TEST_CASE("a disturbed rung below a faster one does not make memory quicken", "[ladder]") {
  const std::vector<Rung> ladder = {{1e3, 8e9}, {4e3, 1e9}, {16e3, 4e9}};
  CHECK(slowdown(ladder, 1e3, 4e3) == Approx(2));
  CHECK(slowdown(ladder, 4e3, 16e3) == Approx(1));
}
