// Sampler: how often a body is timed, and when that is enough.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/interference.hpp"

namespace attnbench::measure {

struct SamplingRule {
  double relative_interval = 0.01;  ///< stop when the median's interval is within ± this share
  int min_samples = 10;
  int max_samples = 2000;
  double warmup_seconds = 0.05;  ///< and at least two calls; one, if it passes max_seconds
  int cold_calls = 8;            ///< more of them at most while calls are cold, up to cold_seconds
  double cold_seconds = 30;
  double min_seconds = 0.05;
  double max_seconds = 2.0;  ///< sampling ends at the sample that passes this, see `sample`
};

/// What was timed, in order. Preempted samples are kept and marked, but decide nothing where enough
/// others remain.
struct Samples {
  std::vector<double> seconds;
  std::vector<Interference> beside;    ///< each; empty where the stopwatch does not know
  std::vector<std::size_t> preempted;  ///< indices, rising
  std::string stop;                    ///< "interval", "time" or "samples"
  bool disturbed = false;              ///< too few remain, see `enough_clean`

  /// Those that count: not preempted, or all where they are disturbed.
  std::vector<double> counted() const;
};

/// Whether `clean` samples of `all` stand for a body: a quarter of them at least, since a few that
/// came through among many that did not are no fair choice, and `min_samples` or, where samples are
/// so long that time ends first, half of them.
bool enough_clean(std::size_t clean, std::size_t all, int min_samples);

/// How much longer than max_seconds is sampled for want of clean samples, and how many samples more
/// than max_samples are kept: twice as much in all.
constexpr int most_patience = 2;

/// The clock and the device behind it. The CPU's is the steady clock; another device adds a file
/// with its own (events, cold cache, graphs) and changes nothing here.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  /// Seconds of one call of `body`, the device synchronised.
  virtual double time(const std::function<void()>& body) = 0;
  /// Whether the call timed last took fresh memory from the system, which clears it: the next may
  /// find all it needs in what was freed.
  virtual bool cold() const { return false; }
  /// What other work took from the call timed last; nothing where the call is not the CPU's, or
  /// where that is not known.
  virtual std::optional<Interference> interference() const { return std::nullopt; }
  /// Seconds since some fixed moment, for warm-up and limits.
  virtual double now() const = 0;
};

/// Warms up, then samples until the rule is met, testing the interval at n = 10, 15, 22, 33, …
/// only: testing after every sample would stop on luck. Counted and tested are clean samples. Where
/// too few are clean when time ends or samples are many, sampling goes on up to `most_patience`
/// times as long. `prepare` runs before every call, unclocked.
Samples sample(Stopwatch& stopwatch, const SamplingRule& rule, const std::function<void()>& body,
               const std::function<void()>& prepare = {});

}  // namespace attnbench::measure
