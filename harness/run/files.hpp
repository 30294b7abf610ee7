// Files: the few things about them that more than one part of a run needs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace attnbench::run {

/// The last whole lines of a file, at most `bytes`; empty if it cannot be read.
std::string file_tail(const std::filesystem::path& file, std::size_t bytes);

/// Writes under a temporary name beside `file`, syncs and renames: readers see the old content or
/// the new, never half. Throws std::system_error.
void replace_file(const std::filesystem::path& file, const std::string& text);

}  // namespace attnbench::run
