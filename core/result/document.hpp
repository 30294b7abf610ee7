// result.json as a whole: assembled by the run, and read back by reports and comparisons.
// document.cpp says what each member is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result/machine.hpp"
#include "core/result/record.hpp"

namespace attnbench::result {

/// A task of the suite.
struct TaskInfo {
  std::string task;
  std::string title;
  std::string axis;
  std::optional<std::vector<std::string>> figures;
  Values further;
};

/// The suite as its file had it.
struct SuiteInfo {
  std::string name;
  std::optional<std::string> title;
  std::optional<std::string> source;
  std::optional<std::string> notes;
  std::string published;
  std::string hash;
  std::string settings_hash;
  std::string profile;
  std::optional<std::vector<std::string>> labels;
  std::map<std::string, TaskInfo> tasks;
  Values further;
};

/// The share of a suite's cells that a run has: the second of eight is {2, 8}.
struct ShardInfo {
  std::int64_t index = 0;
  std::int64_t count = 0;
  bool operator==(const ShardInfo&) const = default;
};

/// A run that is part of a merged result.
struct MergedRun {
  std::string source;
  std::string binary;
  std::string seed;
  std::optional<ShardInfo> shard;
  std::string state;
  std::string host;
  std::string started_at;
  std::string finished_at;
  std::optional<std::size_t> cells;
  Values further;
};

struct RunInfo {
  std::string command;
  std::string started_at;
  std::string finished_at;
  std::optional<double> wall_seconds;
  std::optional<std::uint64_t> seed;
  std::optional<int> threads;
  std::optional<int> jobs;
  std::optional<int> rounds;
  std::optional<double> budget_seconds;  ///< of which rounds were left to the undecided
  std::string state;
  std::string reason;
  std::string waiting;
  std::optional<double> calibration_seconds;  ///< see usual_calibration
  std::optional<double> waited_for_quiet_seconds;
  std::string samples;
  std::optional<std::vector<std::string>> plugins;
  std::optional<ShardInfo> shard;
  // Members of a merged result:
  std::optional<std::vector<MergedRun>> merged;
  std::vector<std::string> forced;
  std::optional<Json> submission;
  Values further;
};

/// What computed.
struct Provenance {
  std::string commit;
  std::optional<bool> dirty;
  std::string compiler;
  std::string flags;
  std::string binary;
  Values further;
};

struct Result {
  Values context;                   ///< of Google Benchmark's form
  Json benchmarks = Json::array();  ///< likewise
  SuiteInfo suite;
  RunInfo run;
  MachineCard machine;
  std::map<std::string, Values> ceilings;  ///< rates by name, by device
  Provenance provenance;
  std::vector<CellRecord> cells;  ///< in the plan's order
  Values further;                 ///< what else "attnbench" has

  /// The ceilings of a device; empty where they were not measured.
  const Values& ceilings_of(const std::string& device) const;
};

// to_json writes a part as the schema has it; from_json throws SchemaError.
ATTNBENCH_DESCRIBED(TaskInfo);
ATTNBENCH_DESCRIBED(SuiteInfo);
ATTNBENCH_DESCRIBED(ShardInfo);
ATTNBENCH_DESCRIBED(MergedRun);
ATTNBENCH_DESCRIBED(RunInfo);
ATTNBENCH_DESCRIBED(Provenance);
ATTNBENCH_DESCRIBED(Result);

/// `result` with `context` and `benchmarks`, which Google Benchmark's tools read, made of its other
/// parts. `executable` as it was called.
Result assemble(Result result, const std::string& executable);

/// Writes `result` under a temporary name in the same folder, then renames it over `file`. Throws
/// EnvironmentFailure naming the path if the disk refuses, std::logic_error if a number is not
/// finite.
void write_result(const std::filesystem::path& file, const Result& result);

/// Reads a result.json, or the one in a run's folder, and checks its form. Throws UsageFailure
/// naming file, JSON pointer and expectation.
Result read_result(const std::filesystem::path& file_or_folder);

}  // namespace attnbench::result
