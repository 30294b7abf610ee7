// Files: the few things about them that more than one part of a run needs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace attnbench::run {

/// The last whole lines of a file, at most `bytes`; empty if it cannot be read.
std::string file_tail(const std::filesystem::path& file, std::size_t bytes);

}  // namespace attnbench::run
