// Schedule: which rounds of which cells are still to be measured, in which order, and which of them
// may be measured at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/program/run/plan/planning.hpp"

namespace attnbench::run {

/// How a run shares the machine among its cells.
struct Sharing {
  int rounds = 1;
  /// Every other round goes from the last cell to the first, so that neither of two neighbours
  /// always comes first (A B B A).
  bool in_turns = false;
  int jobs = 1;  ///< trainings at a time, which share threads and memory
  int threads = 1;
  std::int64_t memory_bytes = 0;
  bool sharded = false;  ///< the other cells of the suite run elsewhere
};

/// Further rounds of some cells, after those of all.
struct Further {
  std::set<std::string> cells;  ///< by id
  int begin = 0;
  int end = 0;            ///< exclusive
  bool drawn = false;     ///< the direction of each round is drawn; the workers are fresh in each
  std::string note = {};  ///< a sentence for people
};

/// One round of one cell.
struct ScheduleStep {
  const Planned* planned = nullptr;
  int round = 0;
};

class Schedule {
 public:
  /// Throws UsageFailure where several jobs are asked for and no cell is a training on the CPU.
  Schedule(std::vector<Planned> planned, const Sharing& sharing);
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  const std::vector<Planned>& planned() const { return planned_; }

  /// Notes a round that was measured, now or by an earlier start. A cell of which a round ended
  /// otherwise than ok is done.
  void add(const std::string& cell, int round, bool ok);
  bool wanted(const Planned& planned, int round) const;
  /// Rounds still wanted of one cell, and of all.
  std::size_t steps_left(const Planned& planned) const;
  std::size_t steps_left() const;
  /// Whether a cell is still to be measured whose time is a result.
  bool anything_timed() const;

  /// The next round that is wanted, round after round; nothing where all are done.
  std::optional<ScheduleStep> next();
  /// Adds rounds when all others are done; false where all of them are there already.
  bool next_rounds(const Further& further);
  /// Whether the rounds that `next` gives are of a Further that is drawn.
  bool is_drawn() const { return further_ && further_->drawn; }

  /// Whether a cell may run beside others: a training on the CPU, whose accuracy is the same
  /// whatever runs beside it, in a run of several jobs.
  bool shares(const Planned& planned) const;
  /// The number of threads of a cell: the same for every training of the run, so that one that is
  /// resumed alone keeps its bits.
  int threads_of(const Planned& planned) const;
  /// The trainings to run side by side: those still wanted whose memory fits their share, if there
  /// are at least two.
  std::vector<const Planned*> side_by_side() const;

 private:
  struct Done {
    std::set<int> rounds;
    bool failed = false;
  };
  bool is_backwards() const;

  std::vector<Planned> planned_;
  Sharing sharing_;
  std::map<std::string, Done> done_;  ///< by cell id
  std::optional<Further> further_;    ///< that is being measured
  int current_round_ = 0;
  std::size_t place_ = 0;  ///< of the next cell in this round
};

/// Runs pieces of work on several threads until one of them fails.
class Lanes {
 public:
  /// Shares out the pieces 0 to `pieces` - 1.
  explicit Lanes(std::size_t pieces) : pieces_(pieces) {}

  /// The next piece that no lane has taken; nothing where none is left or a lane has failed.
  std::optional<std::size_t> next();
  /// Whether a lane has failed: the others should stop.
  bool failed() const { return failed_; }
  /// Runs `lane` on `count` threads and waits for all. Then throws what the first that failed
  /// threw.
  void run(std::size_t count, const std::function<void()>& lane);

 private:
  const std::size_t pieces_;
  std::mutex mutex_;
  std::size_t begun_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

}  // namespace attnbench::run
