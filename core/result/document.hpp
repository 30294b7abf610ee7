// result.json as a whole: assembled by the run, read back by reports and comparisons.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
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

}  // namespace attnbench::result
