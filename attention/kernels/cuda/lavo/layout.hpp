// What a block of the running memory holds in shared memory, and where.
#pragma once

#include <cstddef>

#include "attention/kernels/cuda/lavo/plan.hpp"

namespace attnbench::kernels::cuda {

/// Distance of rows of `width` numbers: eight rows at one column lie in different banks where width
/// is a multiple of 32.
constexpr int memory_stride(int width) { return (width + 3) / 4 * 4 + 4; }
constexpr int whole_fours(int n) { return (n + 3) / 4 * 4; }

/// Where the arrays of a block lie in its shared memory, in floats.
struct MemoryLayout {
  int wide, narrow;  ///< distance of rows of `dim` numbers, and of `count`
  int bases, rows, more, c, u, grad, weight, share, read, past, floats;

  constexpr MemoryLayout(int count, int dim, int tile, bool gradient)
      : wide(memory_stride(dim)),
        narrow(memory_stride(count)),
        bases(0),
        rows(bases + whole_fours(count < memory_chunk ? count : memory_chunk) * wide),
        more(rows + tile * wide),
        c(more + (gradient ? tile * wide : 0)),
        u(c + tile * narrow),
        grad(u + tile * narrow),
        weight(grad + (gradient ? tile * narrow : 0)),
        share(weight + tile),
        read(share + tile),
        past(read + tile),
        floats(past + 3 * narrow + 2 * wide) {}  // see MemoryPast
};

/// The most tokens of a tile on the CUDA cores whose block fits in `shared_bytes`, 4 at least: with
/// these every size does that is not refused, on any card from 99 KiB on.
constexpr int memory_tile(int count, int dim, bool gradient, std::size_t shared_bytes) {
  int tile = 32;
  while (tile > 4 &&
         sizeof(float) * static_cast<std::size_t>(MemoryLayout(count, dim, tile, gradient).floats) >
             shared_bytes) {
    tile /= 2;
  }
  return tile;
}

/// What a block on the tensor cores holds, in bytes: bases, two stages of queries and tokens,
/// vectors of floats.
template <int Width>
struct MemoryTensorLayout {
  static constexpr int tile = memory_tensor_tokens * Width * 2;
  static constexpr int query = Width * Width * 2, tokens = query + tile;
  static constexpr int stage = 2 * tile;
  static constexpr int totals = query + 2 * stage;
  static constexpr int fence = totals + memory_threads / 32 * Width * 4;
  static constexpr int past = fence + Width * 4;
  static constexpr int bytes = past + 5 * Width * 4;  // see MemoryPast
};

}  // namespace attnbench::kernels::cuda
