// Supervisor: from a plan to a result. Takes each round from the schedule, has a worker's child
// measure it and keeps the record. A crash or a hang costs the round being measured and no more.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/cell.hpp"
#include "core/process/signals.hpp"
#include "harness/program/run/client/kept_worker.hpp"
#include "harness/program/run/folder/run_store.hpp"
#include "harness/program/run/supervise/conditions.hpp"
#include "harness/program/run/supervise/measurer.hpp"
#include "harness/program/run/supervise/schedule.hpp"
#include "harness/program/run/supervise/settings.hpp"

namespace attnbench::run {

class Supervisor {
 public:
  explicit Supervisor(RunSettings settings);

  /// Plans, measures, writes result.json. Throws UsageFailure before anything is written where the
  /// plan makes no sense; EnvironmentFailure where the journal cannot be written (then the records
  /// before are safe, and the message says how to resume).
  RunOutcome run();

 private:
  void plan();
  void open_store();
  void use_earlier_records();
  LiveTable live_table() const;
  void measure_all();
  void measure_rounds();
  void measure_side_by_side();
  void measure(Measurer& measurer, const ScheduleStep& step);
  void start_measurers();
  void probe_devices();
  void stop_measurers();
  std::size_t build_of(const Cell& cell) const {
    return settings_.cells_of_second.contains(cell.id) ? 1 : 0;
  }
  std::vector<Forecast> forecasts_of(const std::vector<Cell>& cells) const;
  void probe(const std::string& device);
  protocol::Run request_for(const ScheduleStep& step) const;
  WorkerOptions worker_options(const process::Build& build) const;
  MeasurerHooks hooks(const Lanes* lanes);
  bool interrupted() const { return interrupts_->count() > 0; }
  /// The seconds of one round of each cell that has any, as RunSettings::next_rounds takes them.
  std::map<std::string, double> seconds_of_rounds() const;
  Json header() const;
  result::Result result(const std::string& state, const std::string& reason) const;

  RunSettings settings_;
  int rounds_ = 0;
  double cell_seconds_ = 0;
  std::string started_at_;
  Conditions conditions_;
  std::optional<Schedule> schedule_;
  std::unique_ptr<process::Interrupts> interrupts_;
  std::optional<RunStore> store_;
  std::vector<process::Build> builds_;   ///< one or, of two sides, two
  std::deque<KeptWorker> kept_workers_;  ///< of each build
  std::deque<Measurer> measurers_;       ///< of the cells that run alone, for each build
  int round_ = -1;                       ///< round that is being measured
  std::mutex mutex_;  ///< of schedule, store and progress, where trainings run side by side
  std::unique_ptr<Progress> progress_;
  bool told_of_interrupt_ = false;
  /// When this start's first round began, later by the time of probes since.
  std::optional<std::chrono::steady_clock::time_point> first_step_;
  double measured_seconds_ = 0;  ///< of the rounds of this start
};

}  // namespace attnbench::run
