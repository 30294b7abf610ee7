// Files that appear whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace attnbench::result {

/// Writes `content` to a temporary name beside `file`, syncs it and renames it over `file`. On
/// failure the temporary is removed, `file` stays as it was, and EnvironmentFailure names path and
/// reason.
void write_atomically(const std::filesystem::path& file, std::string_view content);

}  // namespace attnbench::result
