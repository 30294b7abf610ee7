// What is known of a cell before it runs: shared by tasks that put one mechanism to one problem.
#pragma once

#include <memory>

#include "tasks/task.hpp"

namespace attnbench::tasks {

/// While it lives, this thread's tensor operations stay on this thread. A worker answers forecasts
/// in the process that forks its children, and a fork after a parallel operation hangs.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int threads_;
};

/// Options resolved and derived, the implementation chosen, the cost of one forward mix and the
/// growth it claims; `support` is no, with the reason, where the cell cannot be done. The caller
/// turns the cost into that of what it times, and predicts peak_bytes.
/// Throws UsageError for options that make no sense.
Forecast forecast_mix(const Registry& registry, const Cell& cell, const Problem& problem);

/// B * H * T * Dv: the numbers that one mix returns.
std::int64_t output_elements(const Problem& problem);

/// A mechanism for the forecast's problem and options.
std::shared_ptr<Mechanism> make_mechanism(const Registry& registry, const Cell& cell,
                                          const Forecast& forecast);

/// The same on the CPU: for what is asked of a mechanism before its device is taken.
std::shared_ptr<Mechanism> make_on_cpu(const Registry& registry, const Cell& cell,
                                       const Forecast& forecast);

/// The implementation that the forecast chose.
const Implementation& chosen(const Registry& registry, const Cell& cell, const Forecast& forecast);

}  // namespace attnbench::tasks
