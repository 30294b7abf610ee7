#include "core/ranking.hpp"

#include "tests/support/catch.hpp"

using attnbench::measure::Estimate;
using attnbench::measure::least_of;
using Indices = std::vector<std::size_t>;

TEST_CASE("the least comes first, with what its interval does not part from it", "[ranking]") {
  CHECK(least_of({}).empty());
  CHECK(least_of({{5, 5, 5}}) == Indices{0});
  CHECK(least_of({{3, 2.9, 3.1}, {1, 0.9, 1.1}, {1.05, 1.0, 1.2}, {2, 1.2, 4}}) == Indices{1, 2});
  // Touching intervals overlap; what overlaps with the second alone is not among them.
  CHECK(least_of({{1, 0.9, 1.1}, {1.2, 1.1, 1.6}, {1.5, 1.5, 1.5}}) == Indices{0, 1});
  CHECK(least_of({{64, 64, 64}, {64, 64, 64}, {65, 65, 65}}) == Indices{0, 1});
}
