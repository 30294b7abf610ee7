// Sampler: how often a body is timed, and when that is enough.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace attnbench::measure {

struct SamplingRule {
  double relative_interval = 0.01;  ///< stop when the median's interval is within ± this share
  int min_samples = 10;
  int max_samples = 2000;
  double warmup_seconds = 0.05;  ///< and at least two calls; one, if it passes max_seconds
  int cold_calls = 8;            ///< more of them at most while calls are cold, up to cold_seconds
  double cold_seconds = 30;
  double min_seconds = 0.05;
  double max_seconds = 2.0;  ///< sampling ends at the sample that passes this
};

struct Samples {
  std::vector<double> seconds;
  std::string stop;  ///< "interval", "time" or "samples"
};

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
  /// Seconds since some fixed moment, for warm-up and limits.
  virtual double now() const = 0;
};

/// Warms up, then samples until the rule is met, testing the interval at n = 10, 15, 22, 33, …
/// only: testing after every sample would stop on luck. `prepare` runs before every call,
/// unclocked.
Samples sample(Stopwatch& stopwatch, const SamplingRule& rule, const std::function<void()>& body,
               const std::function<void()>& prepare = {});

}  // namespace attnbench::measure
