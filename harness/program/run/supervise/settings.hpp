// What a run is asked to do, how it ended, and the exit code that follows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/failure.hpp"
#include "core/process/limits.hpp"
#include "core/process_rank.hpp"
#include "core/result/document.hpp"
#include "harness/program/run/supervise/process_rank.hpp"
#include "harness/program/run/supervise/progress.hpp"
#include "harness/program/run/supervise/schedule.hpp"
#include "harness/program/suite/suite.hpp"

namespace attnbench::run {

struct RunSettings {
  suite::Expanded suite;
  std::vector<std::string> plugins;
  /// Two builds that measure in turns, instead of this program's worker with `plugins`; the ids of
  /// the second one's cells.
  std::vector<process::Build> builds;
  std::set<std::string> cells_of_second;
  std::string command;           ///< as typed
  std::string reproduce;         ///< the same without what chooses cells or folders
  std::filesystem::path out;     ///< empty = runs/NAME-TIME
  std::filesystem::path resume;  ///< the folder of a run to resume; empty = a new run
  std::filesystem::path reuse;   ///< the folder of a run to copy unchanged cells from
  std::set<std::string> retry;   ///< cells with these statuses are measured again
  process::Shard shard;
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0 = one for each core we may use
  int jobs = 1;     ///< trainings at a time, which share the threads
  ProcessRank process_rank;
  std::optional<double> cell_timeout_seconds;
  std::optional<std::int64_t> memory_limit_bytes;
  std::optional<int> rounds;
  std::optional<double> budget_seconds;  ///< see Budget; `rounds` is 1 then
  bool in_turns = false;                 ///< of `attnbench ab`; see Sharing
  /// A function that, when all rounds are measured, says which further rounds to measure; nothing
  /// where that is all. It gets the result so far and the seconds that a round of each cell takes,
  /// with its share of what is between rounds.
  std::function<std::optional<Further>(const result::Result&, const std::map<std::string, double>&)>
      next_rounds;
  bool keep_checkpoints = false;  ///< of trainings that ended well, too
  bool keep_blas_core = false;
  std::optional<double> wait_seconds;  ///< longest wait for quiet; see longest_wait
  bool ceilings = true;                ///< measure the machine's ceilings, for the roofline
  ProgressStyle progress = ProgressStyle::automatic;
};

struct RunOutcome {
  result::Result result;
  std::filesystem::path folder;
  bool interrupted = false;
};

/// Whether no cell was measured, though there are some. Never of a shard.
bool measured_nothing(const result::Result& result);

/// The exit code of a run: 130 interrupted; 1 where a cell is wrong; 5 where one crashed, ended
/// with an error or has a status of `fail_on`; where nothing was measured 2 if all is unsupported,
/// else 3; else 0: disturbed, out of memory, timeout, unsupported and skipped are findings beside
/// measurements.
ExitCode verdict(const RunOutcome& outcome, const std::set<std::string>& fail_on);

}  // namespace attnbench::run
