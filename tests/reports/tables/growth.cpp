#include "reports/tables/growth.hpp"

#include <cmath>
#include <random>

#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

/// `constant` + `factor` * size^exponent at doubling sizes, each value off by up to `noise`, and
/// known to `share` on both sides.
std::vector<reports::GrowthPoint> synthetic(double exponent, double factor, double constant = 0,
                                            double noise = 0, double share = 0) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> spread(1 - noise, 1 + noise);
  std::vector<reports::GrowthPoint> points;
  for (double size = 512; size <= 8192; size *= 2) {
    const double value = (constant + factor * std::pow(size, exponent)) * spread(random);
    points.push_back({size, value});
    if (share > 0) points.back() = {size, value, value * (1 - share), value * (1 + share)};
  }
  return points;
}

reports::GrowthVerdict verdict_of(double exponent, double claimed,
                                  reports::GrowthClaim meant = reports::GrowthClaim::exponent) {
  return reports::fit_growth(synthetic(exponent, 1e-6), claimed, meant).verdict;
}

}  // namespace

TEST_CASE("the exponent of growth is found, and agrees with its claim within the tolerance",
          "[growth]") {
  for (const double exponent : {0.0, 1.0, 2.0}) {
    const reports::GrowthFit growth = reports::fit_growth(synthetic(exponent, 1e-6), exponent);
    CHECK(growth.measured.value() == Approx(exponent).margin(1e-9));
    CHECK(growth.verdict == reports::GrowthVerdict::agrees);
    CHECK(growth.reason.empty());
    CHECK(growth.local.size() == 4);
    for (const reports::LocalSlope& local : growth.local)
      CHECK(local.slope == Approx(exponent).margin(1e-9));
  }
  // Noise of a tenth does not change it.
  CHECK(reports::fit_growth(synthetic(2, 1e-9, 0, 0.1), 2).verdict ==
        reports::GrowthVerdict::agrees);
  CHECK(reports::fit_growth(synthetic(1, 1e-6, 0, 0.1), 1).verdict ==
        reports::GrowthVerdict::agrees);
  for (const auto& [exponent, claimed] :
       {std::pair{2.0, 1.0}, {1.0, 2.0}, {1.16, 1.0}, {0.2, 0.0}, {2.21, 2.0}}) {
    CHECK(verdict_of(exponent, claimed) == reports::GrowthVerdict::differs);
  }
  CHECK(verdict_of(1.14, 1) == reports::GrowthVerdict::agrees);
  CHECK(verdict_of(2.19, 2) == reports::GrowthVerdict::agrees);  // where caches add more
  CHECK_THAT(reports::fit_growth(synthetic(2, 1e-9), 1).reason,
             Catch::Contains("2.00") && Catch::Contains("1.00 ± 0.15"));
  const reports::GrowthFit unclaimed = reports::fit_growth(synthetic(1.5, 1e-6));
  CHECK(unclaimed.measured.value() == Approx(1.5));
  CHECK(unclaimed.verdict == reports::GrowthVerdict::undecided);
  CHECK(unclaimed.reason.empty());
  CHECK(reports::exponent_text(-0.001) == "0.00");
  CHECK(reports::exponent_text(-0.254) == "-0.25");
}

TEST_CASE("a bound is refuted by faster growth alone", "[growth]") {
  CHECK(verdict_of(1.2, 1, reports::GrowthClaim::bound) == reports::GrowthVerdict::differs);
  CHECK(verdict_of(1.1, 1, reports::GrowthClaim::bound) == reports::GrowthVerdict::agrees);
  const reports::GrowthFit slower =
      reports::fit_growth(synthetic(0.3, 1e-6), 1, reports::GrowthClaim::bound);
  CHECK(slower.verdict == reports::GrowthVerdict::below);
  CHECK_THAT(slower.reason, Catch::Contains("0.30"));
  CHECK(std::string(reports::claim_word(slower, reports::GrowthClaim::bound)) == "held");
}

TEST_CASE("a claim is held, missed or cannot be told by the interval of the exponent", "[growth]") {
  const auto fit = [](double exponent, double share) {
    return reports::fit_growth(synthetic(exponent, 1e-6, 0, 0, share), 1);
  };
  const auto word = [](const reports::GrowthFit& found) {
    return std::string(reports::claim_word(found, reports::GrowthClaim::exponent));
  };
  CHECK(word(fit(1, 0.02)) == "held");
  CHECK(word(fit(1.4, 0.02)) == "missed");
  CHECK(word(fit(0.6, 0.02)) == "missed");
  CHECK(word(fit(1.14, 0.02)) == "cannot tell");
  const reports::GrowthFit wide = fit(1, 0.4);
  CHECK(word(wide) == "cannot tell");
  CHECK(wide.measured.value() == Approx(1));
  CHECK_THAT(wide.reason, Catch::Contains("across the edge"));
  // The interval is that of the worst case: sizes above the middle at one bound, below at the
  // other.
  const reports::GrowthFit two =
      reports::fit_growth({{1, 1, 0.9, 1.1}, {2, 2, 2, 2}, {4, 4, 3.6, 4.4}}, 1);
  CHECK(two.high == Approx(std::log(4.4 / 0.9) / std::log(4)));
  CHECK(two.low == Approx(std::log(3.6 / 1.1) / std::log(4)));
}

TEST_CASE("smaller growth that rises is no miss where larger sizes could be chosen", "[growth]") {
  const auto chosen = [](reports::GrowthFit fit) {
    REQUIRE(fit.verdict == reports::GrowthVerdict::differs);
    reports::excuse_lower_orders(fit, reports::Reach::chosen);
    return fit;
  };
  // Fixed costs weigh at the small end.
  const reports::GrowthFit rising = chosen(reports::fit_growth(synthetic(2, 1e-9, 0.003), 2));
  CHECK(rising.local.front().slope < rising.local.back().slope);
  CHECK(rising.verdict == reports::GrowthVerdict::undecided);
  CHECK_THAT(rising.reason, Catch::Contains("larger sizes would tell"));
  CHECK(chosen(reports::fit_growth(synthetic(1, 1e-6), 2)).verdict ==
        reports::GrowthVerdict::differs);
  CHECK(chosen(reports::fit_growth(synthetic(2, 1e-9), 1)).verdict ==
        reports::GrowthVerdict::differs);
}

TEST_CASE("too few sizes, a narrow range and some zeros decide nothing", "[growth]") {
  CHECK(reports::fit_growth({}, 1).verdict == reports::GrowthVerdict::undecided);
  CHECK(std::string(reports::claim_word(reports::fit_growth({}, 1),
                                        reports::GrowthClaim::exponent)) == "cannot tell");
  CHECK(reports::fit_growth({{512, 1}, {1024, 2}}, 1).verdict == reports::GrowthVerdict::undecided);
  const reports::GrowthFit narrow = reports::fit_growth({{512, 1}, {640, 1.2}, {768, 1.5}}, 1);
  CHECK(narrow.verdict == reports::GrowthVerdict::undecided);
  CHECK_FALSE(narrow.measured.has_value());
  CHECK_THAT(narrow.reason, Catch::Contains("factor of 4"));
  CHECK(reports::fit_growth({{1, 0}, {2, 4}, {4, 8}}, 1).verdict ==
        reports::GrowthVerdict::undecided);
  // No workspace at any size is flat.
  const std::vector<reports::GrowthPoint> none = {{512, 0}, {1024, 0}, {2048, 0}};
  CHECK(reports::fit_growth(none, 0).verdict == reports::GrowthVerdict::agrees);
  CHECK(reports::fit_growth(none, 1).verdict == reports::GrowthVerdict::differs);
  CHECK(reports::fit_growth(none, 0).local.empty());
  // A size measured several times counts once, by its median.
  const reports::GrowthFit growth =
      reports::fit_growth({{4, 4}, {1, 1}, {2, 2}, {2, 900}, {2, 2}, {1, 1}, {4, 4}}, 1);
  CHECK(growth.measured.value() == Approx(1));
  REQUIRE(growth.local.size() == 2);
  CHECK(growth.local[1].to == 4);
}
