// Statistics of samples: robust, distribution-free, small.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace attnbench {

/// An interval that includes both ends.
struct Interval {
  double low = 0;
  double high = 0;
};

/// The median of a non-empty list; the mean of the middle two where the count is even.
double median(std::vector<double> values);

/// The order-statistic interval of the median at `confidence`; nothing where the count is too small
/// for one (fewer than 6 values at 95 %).
std::optional<Interval> median_interval(std::vector<double> values, double confidence = 0.95);

/// A median with its bounds.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
  bool order = false;  ///< the bounds are order statistics at 95 %, else the range
};

/// The median of a non-empty list with its bounds. With six or more values the bounds are an
/// order-statistic interval at 95 %; fewer give no such promise, and the bounds are their range.
Spread spread_of(const std::vector<double>& values);

/// The two-sided 95 % point of Student's t at so many degrees of freedom, at least one: by Wallace
/// (1959), too great by less than 5 % from two degrees on.
double student_t(double freedom);

/// How far values scatter in their own list, over lists that share that scatter: times of the
/// rounds of several cells. Three values say little of it, those of many cells much.
class Scatter {
 public:
  /// Adds a list. One of fewer than two values, or in which not all are positive, says nothing.
  void add(const std::vector<double>& values);

  /// The factor on both sides within which the geometric mean of `count` values is known at 95 %,
  /// by Student's t over logarithms; infinite where nothing was added.
  double factor(std::size_t count) const;

  /// The spread of `count` values with a range widened, never narrowed, to that factor; as
  /// it is where it is of order statistics, or nothing was added.
  Spread widened(Spread spread, std::size_t count) const;

 private:
  double squares_ = 0;  ///< sum of squared deviations of logarithms from their list's mean
  double freedom_ = 0;
};

/// Slope of ln y over ln x by least squares, for x, y > 0 and at least two distinct x.
double growth_exponent(const std::vector<double>& x, const std::vector<double>& y);

// ---- ranking: which is least, and which cannot be distinguished from it

/// A median with the bounds of its interval; all three alike where the number is exact.
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// Indices of the estimates that cannot be distinguished from the least, by median, the least
/// first: their intervals overlap with its own.
std::vector<std::size_t> least_of(const std::vector<Estimate>& estimates);

}  // namespace attnbench
