// result.json as a whole: assembled by the run, with the part that Google Benchmark's tools read,
// and read back by reports and comparisons.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace attnbench::result {

using Json = nlohmann::json;

/// What the run knows at its end; each part as record.hpp defines it. Unknown parts stay empty
/// objects.
struct Parts {
  std::string executable;  ///< as it was called, for `context`
  Json suite;
  Json run;
  Json machine;
  Json ceilings;
  Json provenance;
  std::vector<Json> cells;  ///< records, in the plan's order
};

/// result.json's value: Google Benchmark's context and rows beside our block.
Json assemble(const Parts& parts);

/// Writes `result` under a temporary name in the same folder, then renames it over `file`. Throws
/// EnvironmentFailure naming the path if the disk refuses, std::logic_error if a number is not
/// finite.
void write_result(const std::filesystem::path& file, const Json& result);

/// Reads a result.json, or the one in a run's folder, and checks its form. Throws UsageFailure
/// naming file, JSON pointer and expectation.
Json read_result(const std::filesystem::path& file_or_folder);

/// Writes `content` to a temporary name beside `file`, syncs it and renames it over `file`. On
/// failure the temporary is removed, `file` stays as it was, and EnvironmentFailure names path and
/// reason.
void write_atomically(const std::filesystem::path& file, std::string_view content);

/// `context` from the machine card and the run: date, host_name, executable, num_cpus, mhz_per_cpu,
/// cpu_scaling_enabled, caches, load_avg, library_build_type, json_schema_version.
Json benchmark_context(const Json& machine, const Json& run, const std::string& executable);

/// One row per cell, timing and round, the rounds as repetitions; cells without a time have none.
/// In microseconds: real_time is the round's median, cpu_time the mean CPU time of all threads of a
/// sample. A disturbed row says so: a counter `disturbed` of 1.
Json benchmark_rows(const std::vector<Json>& cells, int threads);

/// "kernel/latte, scan/batch:1/…": the same for the same cell in every result.
std::string benchmark_name(const Json& cell, const std::string& what);

}  // namespace attnbench::result
