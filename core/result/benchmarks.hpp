// The part of a result.json that Google Benchmark's tools read.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/result/document.hpp"

namespace attnbench::result {

/// The context of Google Benchmark's form, from the machine card and the run: date, host_name,
/// executable, num_cpus, mhz_per_cpu, cpu_scaling_enabled, caches, load_avg, library_build_type,
/// json_schema_version.
Values benchmark_context(const MachineCard& machine, const RunInfo& run,
                         const std::string& executable);

/// One row per timing and round of each cell that is ok, the rounds as repetitions. Disturbed
/// rounds have none: compare.py takes the mean of all rows, those with `error_occurred` too.
/// In microseconds: real_time is the round's median, cpu_time the mean CPU time of all threads of a
/// sample.
Json benchmark_rows(const std::vector<CellRecord>& cells, int threads);

/// Names of timings, such as "kernel/latte, scan/length:512/forward": task, label, the settings
/// that vary over the task's cells, the options that vary under one label, and what was timed.
/// Cells of one label that differ in a setting or an option have different names. A cell has the
/// same name in two results where the same settings vary in both.
class BenchmarkNames {
 public:
  explicit BenchmarkNames(const std::vector<CellRecord>& cells);
  std::string of(const CellRecord& cell, const std::string& what) const;

 private:
  using KeysByName = std::map<std::string, std::set<std::string>>;
  KeysByName settings_;  ///< by task
  KeysByName options_;   ///< by task and label
};

}  // namespace attnbench::result
