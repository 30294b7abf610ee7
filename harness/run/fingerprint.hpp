// Fingerprints of the programs that measure, and the small cache folder where they are remembered.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attnbench::run {

/// Of the worker, its library and the plugins, by content. Files that were seen before with the
/// same size, time and inode are not read again. A file that is not there counts as empty.
std::string binary_fingerprint(const std::vector<std::string>& plugins);

/// $XDG_CACHE_HOME/attnbench/NAME or ~/.cache/attnbench/NAME; empty where there is no such folder.
std::filesystem::path cache_file(const std::string& name);

/// Writes a cache file; failing to is no failure. The oldest files go when there are very many.
void remember(const std::filesystem::path& file, std::string_view content);

}  // namespace attnbench::run
