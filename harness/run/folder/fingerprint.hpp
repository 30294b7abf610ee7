// Fingerprints of the programs that measure, the sources they come from, and the cache folder where
// fingerprints and answers of the worker are kept.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::run {

/// Of the worker, its library and the plugins, by content. A file with the size, time and inode
/// that it had before is not read again. A missing file counts as empty.
std::string binary_fingerprint(const std::vector<std::string>& plugins);

/// {commit, dirty, compiler, flags, binary}. The commit is that of the checkout that holds the
/// program, and absent where there is none. `binary` is a binary_fingerprint.
nlohmann::json provenance(const std::string& binary);

/// $XDG_CACHE_HOME/attnbench/NAME or ~/.cache/attnbench/NAME; empty where there is no such folder.
std::filesystem::path cache_file(const std::string& name);

/// Writes a cache file, its hash in the first line; a failure is ignored. Where there are more than
/// 256 files the oldest half is deleted.
void remember(const std::filesystem::path& file, const nlohmann::json& value);

/// What `remember` wrote there. Nothing where the file is missing, or damaged: then it is deleted.
std::optional<nlohmann::json> recalled(const std::filesystem::path& file);

}  // namespace attnbench::run
