// Sampler: how often a body is timed, and when that is enough.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/protocol.hpp"
#include "harness/measure/interference.hpp"

namespace attnbench::measure {

using protocol::SamplingRule;

/// Samples in order. Preempted ones are kept and marked; they count only where too few others
/// remain.
struct Samples {
  std::vector<double> seconds;
  std::vector<Interference> beside;    ///< of each sample; empty where unknown
  std::vector<std::size_t> preempted;  ///< indices, rising
  std::string stop;                    ///< "interval", "time" or "samples"
  bool disturbed = false;              ///< too few are clean, see `enough_clean`
  double warm_up_seconds = 0;          ///< before the first of them

  /// Samples that are not preempted; all of them where `disturbed`.
  std::vector<double> counted() const;
};

/// Whether `clean` of `all` samples represent a body: at least a quarter of them (fewer would be a
/// biased choice), and at least `min_samples` or, where samples are too long for that many, half of
/// them.
bool enough_clean(std::size_t clean, std::size_t all, int min_samples);

/// With too few clean samples, sampling continues up to this many times max_seconds and
/// max_samples.
constexpr int max_patience = 2;

/// The clock of a device: the steady clock for the CPU, events for CUDA.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  /// Seconds of one call of `body`, the device synchronised.
  virtual double time(const std::function<void()>& body) = 0;
  /// Whether the last timed call got fresh memory from the system, which clears it. The next call
  /// may reuse freed memory.
  virtual bool cold() const { return false; }
  /// Interference with the last timed call; nothing where unknown, and on other devices.
  virtual std::optional<Interference> interference() const { return std::nullopt; }
  /// Seconds since a fixed moment, for warm-up and limits.
  virtual double now() const = 0;
};

/// Warms up, then samples until the rule is met. The interval is tested at n = 10, 15, 22, 33, …
/// only: testing after every sample would stop on luck. Only clean samples count. With too few, it
/// continues up to `max_patience` times as long. `prepare` runs before each call, untimed.
Samples sample(Stopwatch& stopwatch, const SamplingRule& rule, const std::function<void()>& body,
               const std::function<void()>& prepare = {});

}  // namespace attnbench::measure
