// Fingerprints of the programs that measure, the sources they come from, and the cache folder where
// fingerprints and answers of the worker are kept.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_object.hpp"
#include "core/result/document.hpp"

namespace attnbench::process {

/// What measures: a worker and the plugins that it loads.
struct Build {
  std::vector<std::string> plugins;
  std::string worker;  ///< empty = attnbench-worker beside the running program

  Build() = default;
  /// This program's worker with plugins.
  Build(std::vector<std::string> plugins_) : plugins(std::move(plugins_)) {}  // NOLINT
  Build(std::vector<std::string> plugins_, std::string worker_)
      : plugins(std::move(plugins_)), worker(std::move(worker_)) {}
  /// The program of the worker.
  std::filesystem::path program() const;
  bool operator==(const Build&) const = default;
};
ATTNBENCH_JSON(Build);

/// The folder of the running program.
std::filesystem::path program_folder();

/// The fingerprint of the worker, its library and the plugins, by content. A file with the size,
/// time and inode that it had before is not read again. A missing file counts as empty.
std::string binary_fingerprint(const Build& build);
inline std::string binary_fingerprint(const std::vector<std::string>& plugins) {
  return binary_fingerprint(Build(plugins));
}
/// The fingerprint of several builds that measure together.
std::string joint_fingerprint(const std::vector<Build>& builds);

/// The commit is commit_in the program's folder. `binary` is a binary_fingerprint.
result::Provenance provenance(const std::string& binary);

/// The commit that the programs in `folder` were built from, with "+" where the sources were
/// changed: of the file attnbench.commit that the build writes beside them, so that a copy of the
/// programs keeps it. Empty where there is none, whatever checkout holds `folder`.
std::string commit_in(const std::filesystem::path& folder);

/// The path of a cache file, $XDG_CACHE_HOME/attnbench/NAME or ~/.cache/attnbench/NAME; empty where
/// there is no such folder.
std::filesystem::path cache_file(const std::string& name);

/// Writes a cache file, its hash in the first line; a failure is ignored. Where there are more than
/// 256 files the oldest half is deleted.
void remember(const std::filesystem::path& file, const nlohmann::json& value);

/// What `remember` wrote there. Nothing where the file is missing, or damaged: then it is deleted.
std::optional<nlohmann::json> recalled(const std::filesystem::path& file);

}  // namespace attnbench::process
