// The search for the length from which on a mechanism is faster than exact attention. No clock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::tasks::crossover {

/// Which side is faster at a length. `untried`: one of the two does not support it.
enum class Faster { exact, mechanism, undecided, untried };
const char* to_string(Faster faster);

struct LengthTrial {
  std::int64_t length = 0;
  Faster faster = Faster::untried;
  double ratio = 1;  ///< the mechanism's time over the exact one's; meaningless where untried
};

/// Compares at one length; nothing where the search must end (no time, no memory).
using Compare = std::function<std::optional<LengthTrial>(std::int64_t length)>;

struct Range {
  std::int64_t minimum = 1;
  std::int64_t maximum = 1;
  double resolution = 0.05;  ///< the search stops at high <= (1 + resolution) * low
};

/// A change of the faster side: one is decided at `low`, the other at `high`; these are the longest
/// and the shortest such lengths. Undecided lengths lie between.
struct SideChange {
  std::int64_t low = 0;
  std::int64_t high = 0;
  Faster from = Faster::exact;  ///< the faster side at `low`; the other is faster at `high`
};

/// found      slower up to low, faster from high on
/// below      faster at every length that is decided, from high (the shortest) on
/// above      slower up to low (the longest decided), but catching up
/// none       slower at every length that is decided, and not catching up
/// reverse    faster up to low, slower from high on
/// several    the sign changes more than once: see crossings
/// undecided  no length is decided
struct SearchResult {
  std::string verdict;
  std::optional<std::int64_t> low;
  std::optional<std::int64_t> high;
  std::vector<SideChange> crossings;
  std::vector<LengthTrial> trials;  ///< by length
};

/// Every power-of-two multiple of `minimum` up to `maximum`, and `maximum`.
std::vector<std::int64_t> coarse_lengths(std::int64_t minimum, std::int64_t maximum);

/// Tries all coarse lengths in ascending order, to see every change; then bisects, in logarithms,
/// between decided lengths of different sign.
SearchResult search(const Range& range, const Compare& compare);

struct EfficiencyFit {
  double length = 0;    ///< where the line crosses the parabola
  double r2_exact = 0;  ///< coefficients of determination of the two fits
  double r2_mechanism = 0;
};

/// The efficiency length of Zhang et al. 2023 (CAB: Comprehensive Attention Benchmarking on Long
/// Sequence Modeling): least-squares fits of the times, softmax's by a n^2 + b n + c, the
/// mechanism's by d n + e, the latter without the shortest length, whose fixed costs hide the
/// growth; the positive root of a n^2 + (b - d) n + (c - e), the greater one of two. `lengths`
/// ascend. Nothing with fewer than four of them, where a n^2 is under 1 % of the exact time at the
/// longest, or without such a root.
std::optional<EfficiencyFit> efficiency_length(const std::vector<double>& lengths,
                                               const std::vector<double>& exact,
                                               const std::vector<double>& mechanism);

}  // namespace attnbench::tasks::crossover
