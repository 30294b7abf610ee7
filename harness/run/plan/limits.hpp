// Limits and shares: sizes as people write them, memory that is to be had, shards of a plan.
#pragma once

#include <cstdint>
#include <string>

namespace attnbench::run {

/// "512M", "20G", "1.5GiB", "4096": bytes; letters are powers of 1024. Throws UsageFailure.
std::int64_t parse_bytes(const std::string& text);

/// What may be used without swapping: the kernel's estimate, or what the control group leaves.
std::int64_t available_memory_bytes();

/// "2/8": the second of eight.
struct Shard {
  int index = 1;
  int count = 1;
  /// Decided by the id alone, so that every machine cuts the same way.
  bool holds(const std::string& cell_id) const;
};
/// Throws UsageFailure.
Shard parse_shard(const std::string& text);

}  // namespace attnbench::run
