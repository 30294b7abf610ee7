// Pairs: two bodies timed in turns, until one is known to be faster.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/sampler.hpp"
#include "core/statistics.hpp"

namespace attnbench::measure {

/// What is timed, and what runs before each call of it, unclocked; that may be empty.
struct PairedBody {
  std::function<void()> call;
  std::function<void()> before;
};

struct Pairs {
  std::vector<double> first_seconds;
  std::vector<double> second_seconds;  ///< as many
  std::vector<std::size_t> preempted;  ///< indices of pairs of which a side was, rising
  double lost_seconds = 0;             ///< that threads waited for a CPU, over all
  std::string stop;                    ///< "decided", "equal", "time", "samples" or "disturbed"

  std::size_t clean() const { return first_seconds.size() - preempted.size(); }
};

/// At which ratios are decided. A decision is looked for several times, and a search makes many.
constexpr double pair_confidence = 0.99;
/// The fewest pairs that have an interval at that confidence.
constexpr std::size_t least_pairs = 8;

/// Warms both up, then times pairs in the order ABBA, so that neither always comes first. Looks at
/// n = 8, 12, 18, 27, …: `decided` when the interval of the ratio leaves 1, `equal` when it is
/// within ± relative_interval of 1. Ends with max_seconds (after the fewest pairs) or max_samples.
/// Counted are clean pairs; for want of them it goes on up to `most_patience` times as long, and
/// ends `disturbed` if fewer than the fewest, or than a quarter, are clean even then.
Pairs sample_pairs(Stopwatch& stopwatch, const SamplingRule& rule, const PairedBody& first,
                   const PairedBody& second);

/// Second over first, the median over clean pairs; over all where none is clean.
double ratio_median(const Pairs& pairs);
/// Its order-statistic interval over clean pairs; nothing where they are too few, or disturbed.
std::optional<Interval> ratio_interval(const Pairs& pairs);

}  // namespace attnbench::measure
