// What the two halves of the emulated Hopper share.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tests/attention/kernels/cuda/emulator/threads.hpp"

namespace attnbench::emulated {

/// The 128-byte swizzle: within each 1024 bytes, the 16-byte pieces of row r of 128 bytes change
/// places by exclusive or with r.
inline std::uint32_t swizzled(std::uint32_t address) { return address ^ ((address >> 7 & 7) << 4); }

/// Whether the n-th asynchronous thing is to happen late: half of them, without a pattern.
inline bool late(std::uint32_t n) {
  n *= 0x9e3779b9u;
  return ((n ^ n >> 15) * 0x85ebca6bu >> 31) != 0;
}

/// A product that a thread ordered.
struct Ordered {
  bool half;
  int columns;
  float* d;
  bool add;
  const std::uint32_t* a;
  std::uint64_t a_operand, b_operand;
  bool transposed;
};

/// What a thread has under way.
struct Products {
  bool fenced = false;
  std::uint32_t groups_so_far = 0;
  std::vector<Ordered> open;
  std::deque<std::vector<Ordered>> groups;
  std::map<float*, std::vector<float>> sums;  // of accumulators on their way
};

/// Of the thread that runs; it ends with the block.
std::shared_ptr<Products> mine();

}  // namespace attnbench::emulated
