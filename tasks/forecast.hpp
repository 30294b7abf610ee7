// Forecasts of cells: shared by tasks that run one mechanism on one problem.
#pragma once

#include <memory>

#include "core/result/record.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks {

/// Keeps this thread's tensor operations on this thread. A worker answers forecasts in the process
/// that forks its children, and a fork after a parallel operation hangs.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int threads_;
};

/// Options resolved and derived, the implementation chosen, the cost of one forward mix and its
/// claimed growth; `support` is no, with the reason, where the cell cannot run. The caller replaces
/// the cost by that of what it times, and predicts peak_bytes. Throws UsageError for invalid
/// options.
TaskForecast forecast_mix(const Registry& registry, const ResolvedCell& cell,
                          const Problem& problem);

/// The task's forecast of a supported cell. Throws UnsupportedError with the reason for others.
TaskForecast supported_forecast(const Task& task, const Registry& registry,
                                const ResolvedCell& cell);

/// The record's section `chosen`.
result::Chosen chosen_section(const TaskForecast& forecast);

/// The number of elements that one mix returns: B * H * T * Dv.
std::int64_t output_elements(const Problem& problem);

/// A mechanism for the forecast's problem and options.
std::shared_ptr<Mechanism> make_mechanism(const Registry& registry, const ResolvedCell& cell,
                                          const TaskForecast& forecast);

/// The mechanism on the CPU: for queries before the device is set up.
std::shared_ptr<Mechanism> make_on_cpu(const Registry& registry, const ResolvedCell& cell,
                                       const TaskForecast& forecast);

/// The tokens of the latent stream that it reads; 0 = it has none.
std::int64_t stream_tokens(const Mechanism& mechanism);

/// The implementation that the forecast chose.
const Implementation& chosen(const Registry& registry, const ResolvedCell& cell,
                             const TaskForecast& forecast);

}  // namespace attnbench::tasks
