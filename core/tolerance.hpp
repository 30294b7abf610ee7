// How far a result may be from its definition, for each dtype: the one place that says so.
//
// The measure is the relative root mean square, over all numbers compared at once: single elements
// that happen to be near zero have no relative accuracy to lose, and a mean over many numbers does
// not hide one that is wrong by its own size. Torch-free, so that tasks and kernels' tests share
// it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "core/problem.hpp"

namespace attnbench {

/// Bars on relative_rms of one dtype.
struct Tolerance {
  double value = 0;     ///< bar of outputs, against the definition in double on the same inputs
  double gradient = 0;  ///< bar of gradients, against those of the composite form in double
  double naive_factor =
      0;  ///< a result may also be this many times as wrong as a naive run; 0 = no
  double unit_roundoff = 0;
  /// The greatest bar. Where a naive run, or the definition after one rounding of its inputs, is
  /// off by so much that the bar would have to be above this, nothing can be said: the output could
  /// be anything.
  double most = 0;
  /// The smallest normal number. What is smaller has no relative accuracy.
  double smallest = 0;
  const char* reason = "";
};

inline Tolerance tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::float64:
      return {
          1e-10,
          1e-10,
          0,
          0x1p-53,
          1e-4,
          0x1p-1022,
          "sums of a few thousand terms lose 4 of double's 16 digits at most; the rest is margin"};
    case Dtype::float32:
      return {1e-5,
              1e-4,
              2,
              0x1p-24,
              1e-2,
              0x1p-126,
              "stable forms were measured at 2e-7 to 1e-6 forward and 1e-6 to 1e-5 backward: wrong "
              "algorithms are far above, reordered sums below"};
    case Dtype::bfloat16:
      return {
          5e-3,
          1e-2,
          2,
          0x1p-9,
          0.1,
          0x1p-126,
          "rounding the output alone costs 1.5e-3; weights or products rounded once more make it "
          "3e-3 where sums are kept in float32"};
    case Dtype::float16:
      return {1e-3,
              2e-3,
              2,
              0x1p-12,
              0.05,
              0x1p-14,
              "three bits more than bfloat16, which divides its bars by 8; the rest is margin for "
              "small numbers that become denormal"};
  }
  return {};
}

/// The error that is allowed where a naive run of the composite form in the same dtype is off by
/// `naive_error`: the inputs may be such (logits in the hundreds) that this dtype can do no better.
struct Allowed {
  double bar = 0;      ///< what is allowed, at most Tolerance::most beyond the plain bar
  double derived = 0;  ///< what it would be without that limit

  bool right(double error) const { return error <= bar; }
  /// Whether the error is neither right nor wrong.
  bool unchecked(double error) const { return error > bar && error <= derived; }
};

inline Allowed allowed(double bar, const Tolerance& tolerance, double naive_error) {
  const double derived =
      std::isfinite(naive_error) ? std::max(bar, tolerance.naive_factor * naive_error) : bar;
  return {std::min(derived, std::max(bar, tolerance.most)), derived};
}

/// The relative root mean square error, sqrt(sum (got - want)^2 / sum want^2). Infinite where
/// anything of `got` is not finite or the counts differ; the plain root mean square where `want` is
/// zero throughout. The root mean square of `want` counts as `floor` at least.
inline double relative_rms(const std::vector<double>& got, const std::vector<double>& want,
                           double floor = 0) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  if (want.empty()) return 0;
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  const auto count = static_cast<double>(want.size());
  double scale = std::max(std::sqrt(size / count), floor);
  if (scale == 0) scale = 1;
  const double error = std::sqrt(difference / count) / scale;
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

}  // namespace attnbench
