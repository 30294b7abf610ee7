// Fingerprints of the programs that measure, and the small cache folder where they are remembered.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::run {

/// Of the worker, its library and the plugins, by content. Files that were seen before with the
/// same size, time and inode are not read again. A file that is not there counts as empty.
std::string binary_fingerprint(const std::vector<std::string>& plugins);

/// $XDG_CACHE_HOME/attnbench/NAME or ~/.cache/attnbench/NAME; empty where there is no such folder.
std::filesystem::path cache_file(const std::string& name);

/// Writes a cache file, its hash in the first line; failing to is no failure. The oldest files go
/// when there are very many.
void remember(const std::filesystem::path& file, const nlohmann::json& value);

/// What `remember` wrote there. Nothing where there is no such file, or one that does not have its
/// hash: that one is deleted.
std::optional<nlohmann::json> recalled(const std::filesystem::path& file);

}  // namespace attnbench::run
