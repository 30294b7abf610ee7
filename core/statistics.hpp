// Statistics of samples: robust, distribution-free, small.
#pragma once

#include <optional>
#include <vector>

namespace attnbench::measure {

/// Both ends belong to it.
struct Interval {
  double low = 0;
  double high = 0;
};

/// Of a non-empty list; the mean of the middle two where the count is even.
double median(std::vector<double> values);

/// The order-statistic interval of the median at `confidence`; nothing where the count is too small
/// for one (fewer than 6 values at 95 %).
std::optional<Interval> median_interval(std::vector<double> values, double confidence = 0.95);

/// Slope of ln y over ln x by least squares, for x, y > 0 and at least two distinct x.
double growth_exponent(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace attnbench::measure
