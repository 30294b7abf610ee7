#include "core/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

std::vector<double> exponential_sample(std::mt19937_64& random, std::size_t n) {
  std::exponential_distribution<double> law(1.0);
  std::vector<double> values(n);
  for (double& value : values) value = law(random);
  return values;
}

}  // namespace

TEST_CASE("median takes the middle, or the mean of the middle two", "[statistics]") {
  CHECK(attnbench::median({3}) == 3);
  CHECK(attnbench::median({5, 1, 9}) == 5);
  CHECK(attnbench::median({4, 1, 9, 2}) == 3);
  CHECK_THROWS_AS(attnbench::median({}), std::logic_error);
}

TEST_CASE("a spread has order statistics for bounds from six values on, the range before",
          "[statistics]") {
  const auto few = attnbench::spread_of({3, 1, 2});
  CHECK(few.median == 2);
  CHECK(few.low == 1);
  CHECK(few.high == 3);
  CHECK_FALSE(few.order);
  std::vector<double> many{100};
  for (int i = 1; i < 12; ++i) many.push_back(i);
  const auto spread = attnbench::spread_of(many);
  CHECK(spread.order);
  CHECK(spread.low == 3);
  CHECK(spread.high == 10);
}

TEST_CASE("median interval ranks agree with the binomial table", "[statistics]") {
  // n, 1-based lower rank of the 95 % interval: the published table of the sign test.
  CHECK_FALSE(attnbench::median_interval({1, 2, 3, 4, 5}));
  // Five values hold the median with probability 1 - 2 / 32 = 0.9375.
  CHECK(attnbench::median_interval({1, 2, 3, 4, 5}, 0.93));
  const std::vector<std::pair<std::size_t, double>> table{{6, 1},  {8, 1},  {9, 2},  {10, 2},
                                                          {15, 4}, {20, 6}, {25, 8}, {50, 18}};
  for (const auto& [n, rank] : table) {
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<double>(i + 1);
    const auto interval = attnbench::median_interval(values);
    REQUIRE(interval);
    CHECK(interval->low == rank);
    CHECK(interval->high == static_cast<double>(n) + 1 - rank);
  }
}

TEST_CASE("median interval covers the true median as often as it says", "[statistics]") {
  const double truth = std::log(2.0);
  for (const std::size_t n : {6u, 10u, 22u, 73u, 1500u}) {
    std::mt19937_64 random(n);
    const int trials = n > 1000 ? 400 : 4000;
    int covered = 0;
    for (int trial = 0; trial < trials; ++trial) {
      const auto interval = attnbench::median_interval(exponential_sample(random, n));
      REQUIRE(interval);
      covered += interval->low <= truth && truth <= interval->high ? 1 : 0;
    }
    const double share = covered / static_cast<double>(trials);
    // Four standard errors of a share near 0.95 in so many trials.
    const double slack = 4 * std::sqrt(0.05 * 0.95 / trials);
    INFO("n = " << n << ", covered " << share);
    CHECK(share >= 0.95 - slack);
    CHECK(share <= 0.985);
  }
}

TEST_CASE("the points of Student's t agree with the table", "[statistics]") {
  const std::vector<std::pair<double, double>> table{
      {2, 4.303}, {3, 3.182}, {4, 2.776}, {6, 2.447}, {10, 2.228}, {30, 2.042}, {120, 1.980}};
  for (const auto& [freedom, point] : table) {
    INFO("degrees of freedom " << freedom);
    CHECK(attnbench::student_t(freedom) >= point - 5e-4);
    CHECK(attnbench::student_t(freedom) <= 1.05 * point);
  }
}

TEST_CASE("a scatter is shared by lists of any level", "[statistics]") {
  attnbench::Scatter scatter;
  CHECK(std::isinf(scatter.factor(3)));
  scatter.add({5});
  scatter.add({5, 0});
  CHECK(std::isinf(scatter.factor(3)));
  CHECK(scatter.widened({2, 1, 3, false}, 2).high == 3);
  // Logarithms off by -0.1, 0 and 0.1: a variance of 0.01 with two degrees of freedom each.
  const double step = std::exp(0.1);
  scatter.add({1 / step, 1, step});
  CHECK(scatter.factor(3) == Approx(std::exp(attnbench::student_t(2) * 0.1 / std::sqrt(3.0))));
  scatter.add({700 / step, 700, 700 * step});
  CHECK(scatter.factor(4) == Approx(std::exp(attnbench::student_t(4) * 0.1 / 2)));
  CHECK(scatter.widened({1, 0.99, 2, false}, 4).low == Approx(1 / scatter.factor(4)));
  CHECK(scatter.widened({1, 0.99, 2, false}, 4).high == 2);
  CHECK(scatter.widened({1, 0.99, 1.01, true}, 4).low == 0.99);
}

TEST_CASE("growth exponent finds the power", "[statistics]") {
  const std::vector<double> x{256, 512, 1024, 4096};
  std::vector<double> y;
  for (const double length : x) y.push_back(3e-9 * std::pow(length, 2));
  CHECK(attnbench::growth_exponent(x, y) == Approx(2.0));
  CHECK_THROWS_AS(attnbench::growth_exponent({1, 1}, {2, 3}), std::logic_error);
  CHECK_THROWS_AS(attnbench::growth_exponent({1, 2}, {0, 3}), std::logic_error);
  CHECK_THROWS_AS(attnbench::growth_exponent({1}, {1}), std::logic_error);
}

TEST_CASE("the least comes first, with what its interval does not part from it", "[statistics]") {
  CHECK(attnbench::least_of({}).empty());
  CHECK(attnbench::least_of({{5, 5, 5}}) == std::vector<std::size_t>{0});
  CHECK(attnbench::least_of({{3, 2.9, 3.1}, {1, 0.9, 1.1}, {1.05, 1.0, 1.2}, {2, 1.2, 4}}) ==
        std::vector<std::size_t>{1, 2});
  // Touching intervals overlap; what overlaps with the second alone is not among them.
  CHECK(attnbench::least_of({{1, 0.9, 1.1}, {1.2, 1.1, 1.6}, {1.5, 1.5, 1.5}}) ==
        std::vector<std::size_t>{0, 1});
  CHECK(attnbench::least_of({{64, 64, 64}, {64, 64, 64}, {65, 65, 65}}) ==
        std::vector<std::size_t>{0, 1});
}
