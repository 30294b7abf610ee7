// Results that are kept beside the pictures of the gallery: without samples, logs and paths, small
// enough for the repository, and whole enough for every figure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/result/document.hpp"

namespace attnbench::gallery {

/// The largest suites, with 150 timed cells or 70 trainings, need that much.
constexpr std::size_t max_stored_bytes = 400'000;

/// What the index shows of a stored result.
struct Stored {
  std::filesystem::path file;
  std::string fault;  ///< why it cannot be read: all below is then empty
  std::string suite_hash;
  std::string settings_hash;  ///< empty in results from before there was one
  std::string profile;
  std::string commit;
  std::string finished_at;
  std::string cpu_model;
  std::optional<int> threads;
  std::optional<double> wall_seconds;
  std::optional<double> load;  ///< average over a minute when it began
};

/// Writes a stored result without a fault as `attnbench figures --json` has it.
void to_json(nlohmann::json& json, const Stored& stored);

/// The result without the samples of timings, logs, commands that repeat cells, names of host and
/// folders, and the rows for Google Benchmark's tools. `published` names the file of published
/// numbers as seen from the stored result's folder; it stays empty where the suite has none.
result::Result stripped(result::Result result, const std::string& published);

/// What a file of a stripped result holds: its JSON with numbers of six digits, and a line end.
/// Throws UsageFailure where it is larger than `max_stored_bytes`.
std::string stored_text(const result::Result& stripped);

/// Writes FOLDER/SUITE.json, stripped. `suites` is the folder with the suite's published numbers.
/// Throws UsageFailure where the result is not of a complete run, has no measured cell, or is
/// larger than `max_stored_bytes`; EnvironmentFailure where the disk refuses.
std::filesystem::path store(const result::Result& result, const std::filesystem::path& folder,
                            const std::filesystem::path& suites);

/// What is stored of `suite`; nothing where there is no such file. Reads neither cells nor schema:
/// the index has to be quick.
std::optional<Stored> look_up(const std::filesystem::path& folder, const std::string& suite);

}  // namespace attnbench::gallery
