// Pairs: two bodies timed in turns, until one is known to be faster.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/statistics.hpp"
#include "harness/measure/sampler.hpp"

namespace attnbench::measure {

/// What is timed, and what runs before each call, untimed; `before` may be empty.
struct PairedBody {
  std::function<void()> call;
  std::function<void()> before;
};

struct Pairs {
  std::vector<double> first_seconds;
  std::vector<double> second_seconds;  ///< as many
  std::vector<std::size_t> preempted;  ///< rising indices of pairs with a preempted side
  double lost_seconds = 0;             ///< threads waited for a CPU, in total
  std::string stop;                    ///< "decided", "equal", "time", "samples" or "disturbed"

  std::size_t clean() const { return first_seconds.size() - preempted.size(); }
};

/// Confidence of decisions. It is tested several times, and a search makes many decisions.
constexpr double pair_confidence = 0.99;
/// The fewest pairs that have an interval at that confidence.
constexpr std::size_t least_pairs = 8;

/// Warms both up, then times pairs in the order ABBA. Tests at n = 8, 12, 18, 27, …: `decided` when
/// the interval of the ratio excludes 1, `equal` when it lies within ± relative_interval of 1. Ends
/// at max_seconds (after `least_pairs`) or max_samples. Only clean pairs count; with too few it
/// continues up to `max_patience` times as long, and ends `disturbed` if fewer than `least_pairs`,
/// or fewer than a quarter, are clean.
Pairs sample_pairs(Stopwatch& stopwatch, const SamplingRule& rule, const PairedBody& first,
                   const PairedBody& second);

/// The ratio of second over first, the median over clean pairs; over all where none is clean.
double ratio_median(const Pairs& pairs);
/// The ratio's order-statistic interval over clean pairs; nothing where they are too few, or
/// disturbed.
std::optional<Interval> ratio_interval(const Pairs& pairs);

/// Bodies up to this long are recorded, if nothing has to run before each call.
constexpr double recorded_below_seconds = 1e-4;

/// Returns a function that replays `body.call`; empty where it cannot be recorded, with the reason
/// in `why`.
using Recorder = std::function<std::function<void()>(const PairedBody& body, std::string& why)>;

struct Recording {
  std::function<void()> play;  ///< replaces the body's call; empty = not recorded
  std::string why;             ///< the reason, where a recording was wanted and failed
  bool wanted() const { return play || !why.empty(); }
};

/// Records a body that is `recordable`, or short and with nothing before it: a recording would not
/// see data that `before` makes anew. To find out whether a body is short, it is called 3 times.
Recording record_if_short(Stopwatch& stopwatch, const PairedBody& body, bool recordable,
                          const Recorder& recorder);

}  // namespace attnbench::measure
