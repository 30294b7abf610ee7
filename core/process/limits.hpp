// Limits: the memory and the cores that a run may use, and its share of a suite's cells.
#pragma once

#include <cstdint>
#include <string>

namespace attnbench::process {

/// The bytes that "512M", "20G", "1.5GiB" or "4096" means; letters are powers of 1024. Throws
/// UsageFailure.
std::int64_t parse_bytes(const std::string& text);

/// The memory that may be used without swapping: the kernel's estimate, or what the control group
/// leaves.
std::int64_t available_memory_bytes();

/// The cores that this process may run on: what 0 threads of a worker stand for.
int usable_cores();

/// One of the shards of a suite's cells: "2/8" is the second of eight.
struct Shard {
  int index = 1;
  int count = 1;
  /// Follows from the id alone, so that every machine splits the cells the same way.
  bool holds(const std::string& cell_id) const;
};
/// Throws UsageFailure.
Shard parse_shard(const std::string& text);

}  // namespace attnbench::process
