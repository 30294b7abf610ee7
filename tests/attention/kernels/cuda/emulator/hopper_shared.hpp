// What the parts of the emulated Hopper share: what a block has under way.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tests/attention/kernels/cuda/emulator/hopper.hpp"
#include "tests/attention/kernels/cuda/emulator/threads.hpp"

namespace attnbench::emulated {

/// The 128-byte swizzle: within each 1024 bytes, the 16-byte pieces of row r of 128 bytes change
/// places by exclusive or with r.
inline std::uint32_t swizzled(std::uint32_t address) { return address ^ ((address >> 7 & 7) << 4); }

/// A product that a thread ordered.
struct Ordered {
  bool half;
  int columns;
  float* d;
  bool add;
  const std::uint32_t* a;
  std::array<std::uint32_t, 4> a_values;  ///< when it was ordered
  std::uint64_t a_operand, b_operand;
  bool transposed;
};

/// What a thread has under way.
struct Products {
  bool fenced = false;
  std::uint32_t groups_so_far = 0;
  std::vector<Ordered> open;
  std::deque<std::vector<Ordered>> groups;    ///< closed and not waited for, oldest first
  std::size_t done = 0;                       ///< of the groups, how many have happened
  std::map<float*, std::vector<float>> sums;  ///< of accumulators on their way
  /// Registers that products have used, as they stood at the last fence.
  std::map<float*, std::vector<float>> accumulators;
  std::map<const std::uint32_t*, std::array<std::uint32_t, 4>> fragments;
  std::uint64_t history = 0;  ///< of all products: the same in a warpgroup
};

/// A copy of a tile that is to happen late.
struct TileCopy {
  TensorMap map;
  std::uint32_t to, barrier;
  int coordinates[5];
};

/// A barrier that not everybody may know of yet.
struct NewBarrier {
  int maker;            ///< thread
  bool published;       ///< to the copy engine
  std::uint64_t since;  ///< block_barriers when it was made or published
};

/// What the emulated Hopper keeps of the block that runs. Where the block ends with something under
/// way it is a Fault.
struct HopperBlock {
  std::vector<TileCopy> postponed;
  std::map<std::uint32_t, NewBarrier> new_barriers;
  std::map<int, std::shared_ptr<Products>> products;  ///< of threads
  std::map<int, int> registers;                       ///< of a thread of a warpgroup
  int free_registers = 0;                             ///< in the block's pool
};
HopperBlock& hopper();

/// Of the thread that runs.
Products& products_of_thread();

/// Throws Fault where the thread that runs, or the copy engine, may not know the barrier yet.
void require_known(std::uint32_t barrier, bool to_copies);
/// Bytes have come.
void mbarrier_receive(std::uint32_t barrier, int bytes);
/// Carries out the copies postponed for the barrier; whether there were any.
bool carry_out_copies(std::uint32_t barrier);

}  // namespace attnbench::emulated
