// What a run is asked to do, and how it ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/run/plan/limits.hpp"
#include "harness/run/supervise/progress.hpp"
#include "harness/run/supervise/process_rank.hpp"
#include "harness/suite/suite.hpp"

namespace attnbench::run {

struct RunSettings {
  suite::Expanded suite;
  std::vector<std::string> plugins;
  std::string command;           ///< as it was typed
  std::string reproduce;         ///< the same without what chooses cells or folders
  std::filesystem::path out;     ///< empty = runs/NAME-TIME
  std::filesystem::path resume;  ///< the folder of a run to go on with; empty = a new run
  std::filesystem::path reuse;   ///< the folder of a run to take unchanged cells from
  std::set<std::string> retry;   ///< cells that ended so are measured again
  Shard shard;
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0 = one for each core we may use
  int jobs = 1;     ///< trainings at a time, which share the threads
  Seat seat;        ///< among the processes that train together
  std::optional<double> cell_timeout_seconds;
  std::optional<std::int64_t> memory_limit_bytes;
  std::optional<int> rounds;
  /// Every other round goes from the last cell to the first: of two that stand side by side neither
  /// always comes first (A B B A).
  bool in_turns = false;
  bool keep_blas_core = false;
  std::optional<double> wait_seconds;  ///< for quiet, at most; nothing said: see longest_wait
  bool ceilings = true;  ///< measure what the machine can do, for shares of the roofline
  ProgressStyle progress = ProgressStyle::automatic;
};

struct RunOutcome {
  Json result;  ///< result.json's value
  std::filesystem::path folder;
  bool interrupted = false;
};

}  // namespace attnbench::run
