// Supervisor: from a plan to a result. Measures cell after cell, round after round, in children of
// a worker, and loses at most the cell at work to whatever happens.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "harness/run/plan/blas_core.hpp"
#include "harness/run/folder/journal.hpp"
#include "harness/run/plan/planning.hpp"
#include "harness/run/folder/run_folder.hpp"
#include "harness/run/supervise/settings.hpp"
#include "harness/run/supervise/signals.hpp"
#include "harness/run/worker/worker_client.hpp"

namespace attnbench::run {

class SideBySide;

class Supervisor {
 public:
  explicit Supervisor(RunSettings settings);

  /// Plans, measures, writes result.json. Throws UsageFailure before anything is written where the
  /// plan makes no sense; EnvironmentFailure where the journal cannot be written (what was measured
  /// is safe then, and the message says how to go on).
  RunOutcome run();

 private:
  struct Cancelled {};
  /// The interrupts that a worker was told of, and when.
  struct Told {
    int interrupts = 0;
    std::chrono::steady_clock::time_point since{};
  };

  void plan();
  void open_folder();
  void take_earlier(const JournalContents& contents);
  void take_from_other_run();
  void start_worker();
  std::unique_ptr<WorkerClient> make_worker(const SideBySide* lanes, Waiting waiting);
  void use_worker(Waiting waiting);
  void take_blas();
  void await_quiet();
  bool is_timed(const Planned& planned) const;
  Waiting waiting_for(const Planned& planned);
  void note_device(const std::string& device);
  std::int64_t memory_limit(const std::string& device) const;
  void probe(const std::string& device);
  void probe_devices();
  void measure_all();
  void measure_round(int round);
  void measure_cell(WorkerClient& worker, const Planned& planned, int round);
  Json ask_for_record(WorkerClient& worker, const Planned& planned, int round);
  bool shares(const Planned& planned) const;
  int threads_of(const Planned& planned) const;
  void refuse_needless_jobs() const;
  void refuse_what_is_no_team_work() const;
  void train_side_by_side();
  bool wanted(const Planned& planned, int round) const;
  std::size_t steps_left(const Planned& planned) const;
  void on_tick(WorkerClient& worker, Told& told);
  bool was_cancelled(const Json& answer) const;
  Json held_to_its_form(Json record, const Planned& planned, int round) const;
  Json header() const;
  Json result(const std::string& state, const std::string& reason) const;
  std::string how_to_go_on() const;

  RunSettings settings_;
  int rounds_;
  double cell_seconds_;
  std::int64_t memory_bytes_;
  Json machine_;
  Json identity_;
  std::string started_at_;
  std::vector<Planned> planned_;
  std::map<std::string, std::vector<Json>> records_;  ///< by cell id
  std::map<std::string, Json> probes_;                ///< by device
  RunFolder folder_;
  std::unique_ptr<Interrupts> interrupts_;
  int interrupts_told_ = 0;
  std::mutex mutex_;  ///< of records, journal and progress, where trainings run side by side
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<WorkerClient> worker_;
  Waiting worker_waiting_ = Waiting::active;
  BlasChoice blas_;
  double waited_for_quiet_seconds_ = 0;
  std::unique_ptr<Progress> progress_;
};

}  // namespace attnbench::run
