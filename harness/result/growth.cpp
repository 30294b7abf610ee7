#include "harness/result/growth.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "harness/measure/statistics.hpp"

namespace attnbench::result {
namespace {

constexpr std::size_t least_sizes = 3;
constexpr double least_span = 4;

/// One point per size, in order.
std::vector<GrowthPoint> merged(const std::vector<GrowthPoint>& points) {
  std::map<double, std::vector<double>> by_size;
  for (const GrowthPoint& point : points) by_size[point.size].push_back(point.value);
  std::vector<GrowthPoint> out;
  for (auto& [size, values] : by_size) out.push_back({size, measure::median(std::move(values))});
  return out;
}

/// Why no exponent can be had from these points, or nothing.
std::string too_little(const std::vector<GrowthPoint>& points) {
  if (points.size() < least_sizes) {
    return "fewer than three sizes could be measured";
  }
  if (points.back().size < least_span * points.front().size) {
    return "the sizes span less than a factor of 4";
  }
  const auto zeros = std::count_if(points.begin(), points.end(),
                                   [](const GrowthPoint& point) { return point.value <= 0; });
  if (zeros != 0 && zeros != static_cast<std::ptrdiff_t>(points.size())) {
    return "it is zero at some sizes and not at others";
  }
  return {};
}

double exponent(const std::vector<GrowthPoint>& points) {
  std::vector<double> sizes;
  std::vector<double> values;
  for (const GrowthPoint& point : points) {
    if (point.value <= 0) return 0;
    sizes.push_back(point.size);
    values.push_back(point.value);
  }
  return measure::growth_exponent(sizes, values);
}

}  // namespace

const char* to_string(GrowthVerdict verdict) {
  switch (verdict) {
    case GrowthVerdict::agrees:
      return "agrees";
    case GrowthVerdict::below:
      return "below";
    case GrowthVerdict::differs:
      return "differs";
    case GrowthVerdict::undecided:
      break;
  }
  return "undecided";
}

double growth_tolerance(double claimed) {
  constexpr double linear = 0.15;
  constexpr double quadratic = 0.2;
  return linear + (quadratic - linear) * std::clamp(claimed - 1, 0.0, 1.0);
}

std::vector<LocalSlope> local_slopes(const std::vector<GrowthPoint>& points) {
  const auto ordered = merged(points);
  std::vector<LocalSlope> slopes;
  for (std::size_t i = 1; i < ordered.size(); ++i) {
    const GrowthPoint& a = ordered[i - 1];
    const GrowthPoint& b = ordered[i];
    if (a.value <= 0 || b.value <= 0) continue;
    slopes.push_back({a.size, b.size, std::log(b.value / a.value) / std::log(b.size / a.size)});
  }
  return slopes;
}

GrowthFit fit_growth(const std::vector<GrowthPoint>& points, double claimed, GrowthClaim meant) {
  GrowthFit growth;
  growth.claimed = claimed;
  growth.tolerance = growth_tolerance(claimed);
  growth.local = local_slopes(points);
  const auto ordered = merged(points);
  growth.reason = too_little(ordered);
  if (!growth.reason.empty()) return growth;
  growth.measured = exponent(ordered);
  const double over = *growth.measured - claimed;
  const std::string found = "the exponent is " + exponent_text(*growth.measured);
  if (std::abs(over) <= growth.tolerance) {
    growth.verdict = GrowthVerdict::agrees;
  } else if (over < 0 && meant == GrowthClaim::bound) {
    growth.verdict = GrowthVerdict::below;
    growth.reason = found + ": at these sizes what does not depend on them weighs too";
  } else {
    growth.verdict = GrowthVerdict::differs;
    growth.reason = found + ", claimed is " + exponent_text(claimed) + " ± " +
                    exponent_text(growth.tolerance);
  }
  return growth;
}

std::vector<GrowthPoint> at_least(const std::vector<GrowthPoint>& points, double floor) {
  std::vector<GrowthPoint> out;
  std::copy_if(points.begin(), points.end(), std::back_inserter(out),
               [floor](const GrowthPoint& point) { return point.value >= floor; });
  return out;
}

std::string exponent_text(double exponent) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", exponent);
  return std::string(text) == "-0.00" ? "0.00" : text;
}

}  // namespace attnbench::result
