#include "core/memory_ladder.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("slower is read off the ladder, between rungs by the logarithm", "[ladder]") {
  const std::vector<attnbench::Rung> ladder = {{1e3, 8e9}, {4e3, 4e9}, {16e3, 1e9}};
  CHECK(attnbench::slowdown(ladder, 1e3, 4e3) == Approx(2));
  CHECK(attnbench::slowdown(ladder, 1e3, 16e3) == Approx(8));
  CHECK(attnbench::slowdown(ladder, 4e3, 8e3) == Approx(2));
  CHECK(attnbench::slowdown(ladder, 1, 1e2) == Approx(1));
  CHECK(attnbench::slowdown(ladder, 1, 1e9) == Approx(8));
  CHECK(attnbench::slowdown(ladder, 16e3, 1e3) == 1);
  CHECK(attnbench::slowdown({}, 1, 1e9) == 1);
}

TEST_CASE("a disturbed rung below a faster one does not make memory quicken", "[ladder]") {
  const std::vector<attnbench::Rung> ladder = {{1e3, 8e9}, {4e3, 1e9}, {16e3, 4e9}};
  CHECK(attnbench::slowdown(ladder, 1e3, 4e3) == Approx(2));
  CHECK(attnbench::slowdown(ladder, 4e3, 16e3) == Approx(1));
}
