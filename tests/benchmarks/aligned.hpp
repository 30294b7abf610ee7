// Memory for the benchmarks' arrays, 64-byte aligned as LibTorch's is.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace attnbench::bench {

struct Free {
  void operator()(void* block) const { std::free(block); }
};
template <class T>
using Block = std::unique_ptr<T[], Free>;

/// Not initialised.
template <class T>
Block<T> block_of(std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
  return Block<T>(static_cast<T*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}

}  // namespace attnbench::bench
