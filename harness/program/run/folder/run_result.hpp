// The result of a run, as result.json has it, from what was planned, measured and probed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/process/limits.hpp"
#include "core/result/document.hpp"
#include "harness/program/run/folder/journal.hpp"
#include "harness/program/run/plan/planning.hpp"

namespace attnbench::run {

/// Facts of the run as a whole.
struct RunFacts {
  std::string state;  ///< complete, interrupted or stopped
  std::string reason;
  std::string started_at;
  std::string command;
  std::string reproduce;
  std::uint64_t seed = 0;
  int threads = 0;
  int jobs = 1;
  int rounds = 0;
  std::optional<double> budget_seconds;
  std::vector<std::string> plugins;
  process::Shard shard;
  std::string binary;  ///< fingerprint
  result::SuiteInfo suite;
  result::MachineCard machine;  ///< without the worker's part
  bool blas_core_kept = false;
  double waited_for_quiet_seconds = 0;
};

/// The result of a run; `records` by cell id, `probes` by device, both as in the journal.
result::Result run_result(const RunFacts& facts, const std::vector<Planned>& planned,
                          const Records& records, const std::map<std::string, DeviceProbe>& probes);

}  // namespace attnbench::run
