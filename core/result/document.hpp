// result.json as a whole: assembled by the run, and read back by reports and comparisons.
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
  std::string axis;  ///< the setting that is the x axis
  std::optional<std::vector<std::string>> figures;
  Values further;
};

/// The suite as its file had it.
struct SuiteInfo {
  std::string name;
  std::optional<std::string> title;
  std::optional<std::string> source;  ///< paper, figure or table
  std::optional<std::string> notes;   ///< what a reader should know before or beside the numbers
  std::string published;              ///< file of published numbers
  std::string hash;                   ///< of the file's bytes
  std::string settings_hash;          ///< of the suite without its words for readers
  std::string profile;
  std::optional<std::vector<std::string>> labels;  ///< in the suite's order
  std::map<std::string, TaskInfo> tasks;           ///< by label
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
  std::string source;  ///< its folder or file, as the user named it
  std::string binary;  ///< fingerprint
  std::string seed;
  std::optional<ShardInfo> shard;
  std::string state;  ///< that of the run, or "no result"
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
  std::optional<int> jobs;  ///< trainings at a time
  std::optional<int> rounds;
  std::string state;  ///< complete, interrupted or stopped
  std::string reason;
  std::string waiting;                        ///< passive where the threads of any cell waited so
  std::optional<double> calibration_seconds;  ///< see usual_calibration
  std::optional<double> waited_for_quiet_seconds;
  std::string
      samples;  ///< the file beside the result that has them; empty where it has them itself
  std::optional<std::vector<std::string>> plugins;  ///< as the command line named them
  std::optional<ShardInfo> shard;
  // Members of a merged result:
  std::optional<std::vector<MergedRun>> merged;
  std::vector<std::string> forced;  ///< what differs between those runs
  std::optional<Json> submission;   ///< the submission that started them
  Values further;
};

/// What computed.
struct Provenance {
  std::string commit;
  std::optional<bool> dirty;
  std::string compiler;
  std::string flags;
  std::string binary;  ///< fingerprint
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
ATTNBENCH_JSON(TaskInfo);
ATTNBENCH_JSON(SuiteInfo);
ATTNBENCH_JSON(ShardInfo);
ATTNBENCH_JSON(MergedRun);
ATTNBENCH_JSON(RunInfo);
ATTNBENCH_JSON(Provenance);
ATTNBENCH_JSON(Result);

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
