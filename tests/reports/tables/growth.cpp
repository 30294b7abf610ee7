#include "reports/tables/growth.hpp"

#include <cmath>
#include <random>

#include "tests/support/catch.hpp"

using namespace attnbench::result;

namespace {

/// `constant` + `factor` * size^exponent at doubling sizes, each value off by up to `noise`.
std::vector<GrowthPoint> synthetic(double exponent, double factor, double constant = 0,
                                   double noise = 0) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> spread(1 - noise, 1 + noise);
  std::vector<GrowthPoint> points;
  for (double size = 512; size <= 8192; size *= 2) {
    points.push_back({size, (constant + factor * std::pow(size, exponent)) * spread(random)});
  }
  return points;
}

}  // namespace

TEST_CASE("the exponent of clean growth is found and agrees with its claim", "[growth]") {
  for (const double exponent : {0.0, 1.0, 2.0}) {
    const GrowthFit growth = fit_growth(synthetic(exponent, 1e-6), exponent);
    CHECK(growth.measured.value() == Approx(exponent).margin(1e-9));
    CHECK(growth.verdict == GrowthVerdict::agrees);
    CHECK(growth.reason.empty());
    CHECK(growth.local.size() == 4);
    for (const LocalSlope& local : growth.local)
      CHECK(local.slope == Approx(exponent).margin(1e-9));
  }
}

TEST_CASE("noise of a tenth does not change the verdict", "[growth]") {
  CHECK(fit_growth(synthetic(2, 1e-9, 0, 0.1), 2).verdict == GrowthVerdict::agrees);
  CHECK(fit_growth(synthetic(1, 1e-6, 0, 0.1), 1).verdict == GrowthVerdict::agrees);
}

TEST_CASE("another growth than claimed differs, in both directions", "[growth]") {
  CHECK(fit_growth(synthetic(2, 1e-9), 1).verdict == GrowthVerdict::differs);
  CHECK(fit_growth(synthetic(1, 1e-6), 2).verdict == GrowthVerdict::differs);
  CHECK(fit_growth(synthetic(1.2, 1e-6), 1).verdict == GrowthVerdict::differs);
  CHECK(fit_growth(synthetic(0.2, 1e-3), 0).verdict == GrowthVerdict::differs);
  const GrowthFit growth = fit_growth(synthetic(2, 1e-9), 1);
  CHECK_THAT(growth.reason, Catch::Contains("2.00") && Catch::Contains("1.00 ± 0.15"));
}

TEST_CASE("a bound is refuted by faster growth alone", "[growth]") {
  CHECK(fit_growth(synthetic(1.2, 1e-6), 1, GrowthClaim::bound).verdict == GrowthVerdict::differs);
  CHECK(fit_growth(synthetic(1.1, 1e-6), 1, GrowthClaim::bound).verdict == GrowthVerdict::agrees);
  CHECK(fit_growth(synthetic(0.9, 1e-6), 1, GrowthClaim::bound).verdict == GrowthVerdict::agrees);
  const GrowthFit slower = fit_growth(synthetic(0.3, 1e-6), 1, GrowthClaim::bound);
  CHECK(slower.verdict == GrowthVerdict::below);
  CHECK_THAT(slower.reason, Catch::Contains("0.30"));
}

TEST_CASE("a claim is held, missed or cannot be told by the interval of the exponent", "[growth]") {
  // Values at doubling sizes, each known to `share` on both sides.
  const auto known_to = [](double exponent, double share) {
    std::vector<GrowthPoint> points = synthetic(exponent, 1e-6);
    for (GrowthPoint& point : points) {
      point.low = point.value * (1 - share);
      point.high = point.value * (1 + share);
    }
    return points;
  };
  const auto word = [](const GrowthFit& fit) {
    return std::string(claim_word(fit, GrowthClaim::exponent));
  };
  CHECK(word(fit_growth(known_to(1, 0.02), 1)) == "held");
  CHECK(word(fit_growth(known_to(1.4, 0.02), 1)) == "missed");
  CHECK(word(fit_growth(known_to(0.6, 0.02), 1)) == "missed");
  CHECK(word(fit_growth(known_to(1.14, 0.02), 1)) == "cannot tell");
  const GrowthFit wide = fit_growth(known_to(1, 0.4), 1);
  CHECK(word(wide) == "cannot tell");
  CHECK(wide.measured.value() == Approx(1));
  CHECK(wide.low < 0.85);
  CHECK(wide.high > 1.15);
  CHECK_THAT(wide.reason, Catch::Contains("across the edge"));
  // The interval is that of the worst case: sizes above the middle at one bound, below at the
  // other.
  const GrowthFit two = fit_growth({{1, 1, 0.9, 1.1}, {2, 2, 2, 2}, {4, 4, 3.6, 4.4}}, 1);
  CHECK(two.high == Approx(std::log(4.4 / 0.9) / std::log(4)));
  CHECK(two.low == Approx(std::log(3.6 / 1.1) / std::log(4)));
  // A bound that is not reached is held.
  const GrowthFit under = fit_growth(known_to(0.3, 0.02), 1, GrowthClaim::bound);
  CHECK(std::string(claim_word(under, GrowthClaim::bound)) == "held");
  CHECK(std::string(claim_word(fit_growth({}, 1), GrowthClaim::exponent)) == "cannot tell");
}

TEST_CASE("smaller growth that rises is no miss where larger sizes could be chosen", "[growth]") {
  const auto points = synthetic(2, 1e-9, 0.003);  // fixed costs weigh at the small end
  GrowthFit chosen = fit_growth(points, 2);
  REQUIRE(chosen.verdict == GrowthVerdict::differs);
  excuse_lower_orders(chosen, Reach::chosen);
  CHECK(chosen.verdict == GrowthVerdict::undecided);
  CHECK_THAT(chosen.reason, Catch::Contains("larger sizes would tell"));
  GrowthFit flat = fit_growth(synthetic(1, 1e-6), 2);
  excuse_lower_orders(flat, Reach::chosen);
  CHECK(flat.verdict == GrowthVerdict::differs);
  GrowthFit faster = fit_growth(synthetic(2, 1e-9), 1);
  excuse_lower_orders(faster, Reach::chosen);
  CHECK(faster.verdict == GrowthVerdict::differs);
}

TEST_CASE("an exponent can be had without a claim", "[growth]") {
  const GrowthFit fit = fit_growth(synthetic(1.5, 1e-6));
  CHECK(fit.measured.value() == Approx(1.5));
  CHECK(fit.verdict == GrowthVerdict::undecided);
  CHECK(fit.reason.empty());
}

TEST_CASE("tolerances are the stated ones", "[growth]") {
  CHECK(growth_tolerance(0) == Approx(0.15));
  CHECK(growth_tolerance(1) == Approx(0.15));
  CHECK(growth_tolerance(2) == Approx(0.2));
  CHECK(growth_tolerance(3) == Approx(0.2));
}

TEST_CASE("an undecided growth is shown as such", "[growth]") {
  CHECK(fit_growth({}, 1).verdict == GrowthVerdict::undecided);
  CHECK(fit_growth({{512, 1}, {1024, 2}}, 1).verdict == GrowthVerdict::undecided);
  const GrowthFit narrow = fit_growth({{512, 1}, {640, 1.2}, {768, 1.5}}, 1);
  CHECK(narrow.verdict == GrowthVerdict::undecided);
  CHECK_FALSE(narrow.measured.has_value());
  CHECK_THAT(narrow.reason, Catch::Contains("factor of 4"));
  CHECK(fit_growth({{1, 0}, {2, 4}, {4, 8}}, 1).verdict == GrowthVerdict::undecided);
}

TEST_CASE("no workspace at any size is flat", "[growth]") {
  const std::vector<GrowthPoint> none = {{512, 0}, {1024, 0}, {2048, 0}};
  CHECK(fit_growth(none, 0).verdict == GrowthVerdict::agrees);
  CHECK(fit_growth(none, 1).verdict == GrowthVerdict::differs);
  CHECK(local_slopes(none).empty());
}

TEST_CASE("a size measured several times counts once, by its median", "[growth]") {
  const GrowthFit growth =
      fit_growth({{4, 4}, {1, 1}, {2, 2}, {2, 900}, {2, 2}, {1, 1}, {4, 4}}, 1);
  CHECK(growth.measured.value() == Approx(1));
  REQUIRE(growth.local.size() == 2);
  CHECK(growth.local[0].from == 1);
  CHECK(growth.local[1].to == 4);
}

TEST_CASE("fixed costs bend the small end", "[growth]") {
  const auto points = synthetic(1, 1e-5, 0.01);
  CHECK(fit_growth(points, 1).verdict == GrowthVerdict::differs);
  const auto slopes = local_slopes(points);
  CHECK(slopes.front().slope < slopes.back().slope);
}

TEST_CASE("exponents are written with two digits and no negative zero", "[growth]") {
  CHECK(exponent_text(1) == "1.00");
  CHECK(exponent_text(-0.001) == "0.00");
  CHECK(exponent_text(-0.254) == "-0.25");
}
