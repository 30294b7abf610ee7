// Preparation: from a source of rows to a cache file, in blocks of 1,000 rows, each with its hash,
// so that what was interrupted continues where it stopped, and the file appears as a whole or not
// at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data {

struct PrepareOptions {
  int threads = 1;        ///< that make rows, at least 1; more than one only where any_order()
  ProgressCall progress;  ///< may be empty
  /// Bytes that a file in a folder can still take; empty = what the file system says.
  std::function<std::uint64_t(const std::filesystem::path&)> free_bytes;
};

struct PrepareResult {
  bool already_there = false;  ///< `file` held these rows before; nothing was made
  std::uint64_t rows = 0;
  std::uint64_t resumed_rows = 0;  ///< were there from an earlier, interrupted call
  std::uint64_t bytes = 0;         ///< of the file
  double seconds = 0;
};

/// Writes all rows of `source` to `file`, whose folders it makes. The bytes depend on the rows
/// alone: not on threads, interruptions or time. While it works the rows are in `file` + ".part".
///
/// Throws Cancelled where the progress call says so: the part stays, and the next call with an
/// equal source continues from its last whole block (so it does after a kill). Throws UsageError,
/// and leaves nothing new behind, if `file` exists and holds something else or is damaged, if the
/// disk has not the room, if a write fails, if another process prepares the same file, and where
/// the source does.
PrepareResult prepare(RowSource& source, const std::filesystem::path& file,
                      const PrepareOptions& options = {});

}  // namespace attnbench::tasks::data
