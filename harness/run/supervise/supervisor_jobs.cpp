// The part of the supervisor that runs several trainings at once (--jobs), each in a worker of its
// own with its share of the threads and of the memory. What is timed runs alone, after them.
#include <algorithm>

#include "core/failure.hpp"
#include "harness/run/supervise/side_by_side.hpp"
#include "harness/run/supervise/supervisor.hpp"

namespace attnbench::run {

/// Trainings on the CPU: their accuracy is the same whatever runs beside them.
bool Supervisor::shares(const Planned& planned) const {
  return settings_.jobs > 1 && planned.forecast.value("once", false) &&
         planned.cell.value("device", "cpu") == "cpu";
}

/// The same for every training of the run, so that one that is gone on with alone keeps its bits.
int Supervisor::threads_of(const Planned& planned) const {
  return shares(planned) ? std::max(1, settings_.threads / settings_.jobs) : settings_.threads;
}

void Supervisor::refuse_needless_jobs() const {
  const bool any = std::any_of(planned_.begin(), planned_.end(),
                               [this](const Planned& one) { return shares(one); });
  if (settings_.jobs < 2 || any || settings_.shard.count > 1) return;
  throw UsageFailure("--jobs " + std::to_string(settings_.jobs) +
                     " is for trainings on the CPU, and here are none: cells that are timed run "
                     "one at a time, because two would share caches, cores and clock; use --shard "
                     "on several machines");
}

void Supervisor::refuse_what_is_no_team_work() const {
  if (settings_.seat.alone()) return;
  if (settings_.jobs > 1) {
    throw UsageFailure(
        "--jobs trains several models at once, and WORLD_SIZE says that several "
        "processes train one: choose");
  }
  for (const Planned& planned : planned_) {
    if (!planned.runs() || planned.forecast.value("once", false)) continue;
    throw UsageFailure("WORLD_SIZE says that " + std::to_string(settings_.seat.size) +
                       " processes train together, but " + suite::describe(planned.cell) +
                       " is timed: choose trainings by --only");
  }
}

void Supervisor::train_side_by_side() {
  const auto jobs = static_cast<std::size_t>(settings_.jobs);
  std::vector<const Planned*> trainings;
  for (const Planned& planned : planned_) {
    const double share = static_cast<double>(memory_bytes_) / static_cast<double>(jobs);
    const bool fits = planned.forecast.value("peak_bytes", 0.0) <= share;
    if (shares(planned) && fits && wanted(planned, 0)) trainings.push_back(&planned);
  }
  if (trainings.size() < 2) return;
  if (!worker_) start_worker();  // it measures the ceilings, while nothing else runs
  const std::size_t lanes = std::min(jobs, trainings.size());
  progress_->say(std::to_string(lanes) + " trainings at a time, " +
                 std::to_string(threads_of(*trainings.front())) +
                 (threads_of(*trainings.front()) == 1 ? " thread each." : " threads each.") +
                 (trainings.size() < planned_.size()
                      ? " What is timed, or too large to share the memory, runs alone, afterwards."
                      : ""));
  SideBySide shared(trainings.size());
  shared.run(lanes, [&] {
    const std::unique_ptr<WorkerClient> worker = make_worker(&shared, Waiting::passive);
    while (const auto i = shared.next()) {
      journal_->require_there();
      measure_cell(*worker, *trainings[*i], 0);
    }
  });
}

}  // namespace attnbench::run
