#include "reports/tables/growth.hpp"

#include <cmath>
#include <random>

#include "tests/support/catch.hpp"

using namespace attnbench::result;

namespace {

/// `constant` + `factor` * size^exponent at doubling sizes, each value off by up to `noise`, and
/// known to `share` on both sides.
std::vector<GrowthPoint> synthetic(double exponent, double factor, double constant = 0,
                                   double noise = 0, double share = 0) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> spread(1 - noise, 1 + noise);
  std::vector<GrowthPoint> points;
  for (double size = 512; size <= 8192; size *= 2) {
    const double value = (constant + factor * std::pow(size, exponent)) * spread(random);
    points.push_back({size, value});
    if (share > 0) points.back() = {size, value, value * (1 - share), value * (1 + share)};
  }
  return points;
}

GrowthVerdict verdict_of(double exponent, double claimed,
                         GrowthClaim meant = GrowthClaim::exponent) {
  return fit_growth(synthetic(exponent, 1e-6), claimed, meant).verdict;
}

}  // namespace

TEST_CASE("the exponent of growth is found, and agrees with its claim within the tolerance",
          "[growth]") {
  for (const double exponent : {0.0, 1.0, 2.0}) {
    const GrowthFit growth = fit_growth(synthetic(exponent, 1e-6), exponent);
    CHECK(growth.measured.value() == Approx(exponent).margin(1e-9));
    CHECK(growth.verdict == GrowthVerdict::agrees);
    CHECK(growth.reason.empty());
    CHECK(growth.local.size() == 4);
    for (const LocalSlope& local : growth.local)
      CHECK(local.slope == Approx(exponent).margin(1e-9));
  }
  // Noise of a tenth does not change it.
  CHECK(fit_growth(synthetic(2, 1e-9, 0, 0.1), 2).verdict == GrowthVerdict::agrees);
  CHECK(fit_growth(synthetic(1, 1e-6, 0, 0.1), 1).verdict == GrowthVerdict::agrees);
  for (const auto& [exponent, claimed] :
       {std::pair{2.0, 1.0}, {1.0, 2.0}, {1.16, 1.0}, {0.2, 0.0}, {2.21, 2.0}}) {
    CHECK(verdict_of(exponent, claimed) == GrowthVerdict::differs);
  }
  CHECK(verdict_of(1.14, 1) == GrowthVerdict::agrees);
  CHECK(verdict_of(2.19, 2) == GrowthVerdict::agrees);  // where caches add more
  CHECK_THAT(fit_growth(synthetic(2, 1e-9), 1).reason,
             Catch::Contains("2.00") && Catch::Contains("1.00 ± 0.15"));
  const GrowthFit unclaimed = fit_growth(synthetic(1.5, 1e-6));
  CHECK(unclaimed.measured.value() == Approx(1.5));
  CHECK(unclaimed.verdict == GrowthVerdict::undecided);
  CHECK(unclaimed.reason.empty());
  CHECK(exponent_text(-0.001) == "0.00");
  CHECK(exponent_text(-0.254) == "-0.25");
}

TEST_CASE("a bound is refuted by faster growth alone", "[growth]") {
  CHECK(verdict_of(1.2, 1, GrowthClaim::bound) == GrowthVerdict::differs);
  CHECK(verdict_of(1.1, 1, GrowthClaim::bound) == GrowthVerdict::agrees);
  const GrowthFit slower = fit_growth(synthetic(0.3, 1e-6), 1, GrowthClaim::bound);
  CHECK(slower.verdict == GrowthVerdict::below);
  CHECK_THAT(slower.reason, Catch::Contains("0.30"));
  CHECK(std::string(claim_word(slower, GrowthClaim::bound)) == "held");
}

TEST_CASE("a claim is held, missed or cannot be told by the interval of the exponent", "[growth]") {
  const auto fit = [](double exponent, double share) {
    return fit_growth(synthetic(exponent, 1e-6, 0, 0, share), 1);
  };
  const auto word = [](const GrowthFit& found) {
    return std::string(claim_word(found, GrowthClaim::exponent));
  };
  CHECK(word(fit(1, 0.02)) == "held");
  CHECK(word(fit(1.4, 0.02)) == "missed");
  CHECK(word(fit(0.6, 0.02)) == "missed");
  CHECK(word(fit(1.14, 0.02)) == "cannot tell");
  const GrowthFit wide = fit(1, 0.4);
  CHECK(word(wide) == "cannot tell");
  CHECK(wide.measured.value() == Approx(1));
  CHECK_THAT(wide.reason, Catch::Contains("across the edge"));
  // The interval is that of the worst case: sizes above the middle at one bound, below at the
  // other.
  const GrowthFit two = fit_growth({{1, 1, 0.9, 1.1}, {2, 2, 2, 2}, {4, 4, 3.6, 4.4}}, 1);
  CHECK(two.high == Approx(std::log(4.4 / 0.9) / std::log(4)));
  CHECK(two.low == Approx(std::log(3.6 / 1.1) / std::log(4)));
}

TEST_CASE("smaller growth that rises is no miss where larger sizes could be chosen", "[growth]") {
  const auto chosen = [](GrowthFit fit) {
    REQUIRE(fit.verdict == GrowthVerdict::differs);
    excuse_lower_orders(fit, Reach::chosen);
    return fit;
  };
  // Fixed costs weigh at the small end.
  const GrowthFit rising = chosen(fit_growth(synthetic(2, 1e-9, 0.003), 2));
  CHECK(rising.local.front().slope < rising.local.back().slope);
  CHECK(rising.verdict == GrowthVerdict::undecided);
  CHECK_THAT(rising.reason, Catch::Contains("larger sizes would tell"));
  CHECK(chosen(fit_growth(synthetic(1, 1e-6), 2)).verdict == GrowthVerdict::differs);
  CHECK(chosen(fit_growth(synthetic(2, 1e-9), 1)).verdict == GrowthVerdict::differs);
}

TEST_CASE("too few sizes, a narrow range and some zeros decide nothing", "[growth]") {
  CHECK(fit_growth({}, 1).verdict == GrowthVerdict::undecided);
  CHECK(std::string(claim_word(fit_growth({}, 1), GrowthClaim::exponent)) == "cannot tell");
  CHECK(fit_growth({{512, 1}, {1024, 2}}, 1).verdict == GrowthVerdict::undecided);
  const GrowthFit narrow = fit_growth({{512, 1}, {640, 1.2}, {768, 1.5}}, 1);
  CHECK(narrow.verdict == GrowthVerdict::undecided);
  CHECK_FALSE(narrow.measured.has_value());
  CHECK_THAT(narrow.reason, Catch::Contains("factor of 4"));
  CHECK(fit_growth({{1, 0}, {2, 4}, {4, 8}}, 1).verdict == GrowthVerdict::undecided);
  // No workspace at any size is flat.
  const std::vector<GrowthPoint> none = {{512, 0}, {1024, 0}, {2048, 0}};
  CHECK(fit_growth(none, 0).verdict == GrowthVerdict::agrees);
  CHECK(fit_growth(none, 1).verdict == GrowthVerdict::differs);
  CHECK(fit_growth(none, 0).local.empty());
  // A size measured several times counts once, by its median.
  const GrowthFit growth =
      fit_growth({{4, 4}, {1, 1}, {2, 2}, {2, 900}, {2, 2}, {1, 1}, {4, 4}}, 1);
  CHECK(growth.measured.value() == Approx(1));
  REQUIRE(growth.local.size() == 2);
  CHECK(growth.local[1].to == 4);
}
