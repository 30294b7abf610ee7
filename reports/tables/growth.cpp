#include "reports/tables/growth.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "core/statistics.hpp"
#include "core/text/format.hpp"

namespace attnbench::reports {
namespace {

constexpr std::size_t least_sizes = 3;
constexpr double least_span = 4;

/// One point per size, in order.
std::vector<GrowthPoint> merged(const std::vector<GrowthPoint>& points) {
  struct Values {
    std::vector<double> value, low, high;
  };
  std::map<double, Values> by_size;
  for (const GrowthPoint& point : points) {
    Values& values = by_size[point.size];
    values.value.push_back(point.value);
    values.low.push_back(point.low > 0 ? point.low : point.value);
    values.high.push_back(point.high > 0 ? point.high : point.value);
  }
  std::vector<GrowthPoint> out;
  for (const auto& [size, values] : by_size) {
    out.push_back({size, median(values.value), median(values.low), median(values.high)});
  }
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

/// The exponent, and the least and the greatest that the points' bounds allow: those where all
/// sizes above the middle are at one bound and all below it at the other.
void put_exponent(GrowthFit& fit, const std::vector<GrowthPoint>& points) {
  fit.measured = fit.low = fit.high = 0;
  if (points.front().value <= 0) return;  // all are: see too_little
  std::vector<double> sizes, values, flattest, steepest;
  double middle = 0;
  for (const GrowthPoint& point : points) {
    middle += std::log(point.size) / static_cast<double>(points.size());
  }
  for (const GrowthPoint& point : points) {
    const bool above = std::log(point.size) > middle;
    sizes.push_back(point.size);
    values.push_back(point.value);
    flattest.push_back(above ? point.low : point.high);
    steepest.push_back(above ? point.high : point.low);
  }
  fit.measured = growth_exponent(sizes, values);
  fit.low = std::min(*fit.measured, growth_exponent(sizes, flattest));
  fit.high = std::max(*fit.measured, growth_exponent(sizes, steepest));
}

std::string claim_words(const GrowthFit& fit) {
  return "claimed is " + exponent_text(fit.claimed) + " ± " + exponent_text(fit.tolerance);
}

/// How far a measured exponent may be from the claimed one: 0.15 up to linear, 0.2 from quadratic
/// on, where caches that overflow on the way add more.
double growth_tolerance(double claimed) {
  constexpr double linear = 0.15;
  constexpr double quadratic = 0.2;
  return linear + (quadratic - linear) * std::clamp(claimed - 1, 0.0, 1.0);
}

/// Between neighbours, in order of size; the value of a size that comes more than once is the
/// median. Pairs with a zero are left out.
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

GrowthFit fit_growth(const std::vector<GrowthPoint>& points) {
  GrowthFit fit;
  fit.local = local_slopes(points);
  const auto ordered = merged(points);
  fit.reason = too_little(ordered);
  if (fit.reason.empty()) put_exponent(fit, ordered);
  return fit;
}

GrowthFit fit_growth(const std::vector<GrowthPoint>& points, double claimed, GrowthClaim meant) {
  GrowthFit fit = fit_growth(points);
  fit.claimed = claimed;
  fit.tolerance = growth_tolerance(claimed);
  if (!fit.measured) return fit;
  const double least = claimed - fit.tolerance;
  const double most = claimed + fit.tolerance;
  if (fit.low >= least && fit.high <= most) {
    fit.verdict = GrowthVerdict::agrees;
  } else if (meant == GrowthClaim::bound && fit.high <= most) {
    fit.verdict = GrowthVerdict::below;
    fit.reason = found_words(fit) + ": at these sizes what does not depend on them weighs too";
  } else if (fit.low > most || fit.high < least) {
    fit.verdict = GrowthVerdict::differs;
    fit.reason = found_words(fit) + ", " + claim_words(fit);
  } else {
    fit.reason = found_words(fit) + ", across the edge of what is claimed: " + claim_words(fit);
  }
  return fit;
}

void excuse_caches(GrowthFit& fit, const std::vector<Rung>& ladder, const Touched& touched) {
  if (fit.verdict != GrowthVerdict::differs || *fit.measured < fit.claimed) return;
  const auto by_size = [](const GrowthPoint& a, const GrowthPoint& b) { return a.size < b.size; };
  for (const auto& [what, points] : touched) {
    const auto [least, most] = std::minmax_element(points.begin(), points.end(), by_size);
    if (points.empty() || most->size <= least->size) continue;
    const double slower = slowdown(ladder, least->value, most->value);
    const double excused = std::log(slower) / std::log(most->size / least->size);
    if (!(fit.low - fit.claimed <= fit.tolerance + excused)) continue;
    fit.verdict = GrowthVerdict::undecided;
    fit.reason = found_words(fit) + ", but the " + what + " grows from " +
                 text::human_bytes(least->value) + " to " + text::human_bytes(most->value) +
                 ", and copying that much is " + exponent_text(slower) +
                 " times slower here, which explains " + exponent_text(excused);
    return;
  }
}

void excuse_lower_orders(GrowthFit& fit, Reach reach) {
  if (fit.verdict != GrowthVerdict::differs || *fit.measured > fit.claimed) return;
  const auto less = [](const LocalSlope& a, const LocalSlope& b) { return a.slope < b.slope; };
  if (fit.local.empty()) return;
  const double last = fit.local.back().slope;
  if (reach == Reach::chosen) {
    constexpr double least_rise = 0.02;
    if (last - fit.local.front().slope < least_rise) return;
    fit.verdict = GrowthVerdict::undecided;
    fit.reason = found_words(fit) + ", but rises with the size, at the end to " +
                 exponent_text(last) + ": larger sizes would tell";
    return;
  }
  if (!std::is_sorted(fit.local.begin(), fit.local.end(), less)) return;
  if (last < fit.claimed - fit.tolerance) return;
  fit.verdict = GrowthVerdict::below;
  fit.reason = found_words(fit) + ", but rises with the size, at the last doubling to " +
               exponent_text(last) +
               ": terms of lower order still weigh at the sizes that can be measured";
}

std::string found_words(const GrowthFit& fit) {
  std::string text = "the exponent is " + exponent_text(*fit.measured);
  const std::string low = exponent_text(fit.low), high = exponent_text(fit.high);
  if (low != high) text += " (" + low + " to " + high + ")";
  return text;
}

const char* claim_word(const GrowthFit& fit, GrowthClaim meant) {
  switch (fit.verdict) {
    case GrowthVerdict::agrees:
      return "held";
    case GrowthVerdict::differs:
      return "missed";
    case GrowthVerdict::below:
      return meant == GrowthClaim::bound ? "held" : "cannot tell";
    case GrowthVerdict::undecided:
      break;
  }
  return "cannot tell";
}

std::string exponent_text(double exponent) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", exponent);
  return std::string(text) == "-0.00" ? "0.00" : text;
}

}  // namespace attnbench::reports
