// The sizes of the CPU's caches, as the kernel tells them.
#pragma once

#include <cstdint>

namespace attnbench::measure {

/// Bytes: of one core for the first two levels, of one group of cores for the last.
struct CacheSizes {
  std::int64_t l1 = 32 << 10;
  std::int64_t l2 = 1 << 20;
  std::int64_t l3 = 32 << 20;
};

/// From /sys; a level that is not told there keeps the default above.
CacheSizes cache_sizes();

}  // namespace attnbench::measure
