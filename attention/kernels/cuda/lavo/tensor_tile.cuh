// Tiles of 16-bit rows for the running memory on the tensor cores: copies, products, results.
#pragma once

#include "attention/kernels/cuda/lavo/arguments.cuh"
#include "attention/kernels/cuda/lavo/layout.hpp"
#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/recurrent/tile.cuh"

namespace attnbench::kernels::cuda {

__device__ inline float2 pair_at(const float* from) {
  return *reinterpret_cast<const float2*>(from);
}

__device__ inline std::uint64_t all_rows_of_64(int n) {
  return n >= 64 ? ~std::uint64_t{0} : n <= 0 ? 0 : (std::uint64_t{1} << n) - 1;
}
/// Bit t: whether token t of `n` is there and not hidden. For a whole warp.
__device__ inline std::uint64_t seen_rows_of_64(const std::uint8_t* mask, int n) {
  if (mask == nullptr) return all_rows_of_64(n);
  const int lane = threadIdx.x & 31;
  const unsigned low = __ballot_sync(~0u, lane < n && mask[lane] != 0);
  const unsigned high = __ballot_sync(~0u, lane + 32 < n && mask[lane + 32] != 0);
  return static_cast<std::uint64_t>(high) << 32 | low;
}

/// The token that lies in a row of a tile: the two rows of an accumulator that a thread holds,
/// eight apart, are neighbours.
__device__ inline int token_of(int row) { return (row & ~15) | (row & 7) << 1 | (row >> 3 & 1); }

/// 64 rows to a tile, those not in `seen` 0 and not read; by token_of() where `Paired`. With pieces
/// of 16 bytes the copies are only begun.
template <int Width, bool Paired, class T>
__device__ inline void copy_tile(const Tile<Width>& to, const T* from, std::int64_t stride,
                                 int width, bool by_pieces, std::uint64_t seen) {
  constexpr int pieces = Width / 8, step = memory_threads / pieces;
  const int piece = static_cast<int>(threadIdx.x) % pieces;
#pragma unroll 4
  for (int row = static_cast<int>(threadIdx.x) / pieces; row < memory_tensor_tokens; row += step) {
    const int t = Paired ? token_of(row) : row;
    const bool there = (seen >> t & 1) != 0 && piece * 8 < width;
    const T* const at = there ? from + t * stride + piece * 8 : from;
    if (by_pieces) {
      copy_async(to.address(row, piece * 8), at, there ? 16 : 0);
      continue;
    }
    Word words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = piece * 8 + 2 * j;
      const Word low = there && column < width ? at[2 * j].bits : 0;
      const Word high = there && column + 1 < width ? at[2 * j + 1].bits : 0;
      words[j] = low | high << 16;
    }
    to.piece(row, piece) = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

/// The coordinates along the bases of 16 rows of a tile.
template <class T, int Width>
__device__ inline void project_tile(float (&to)[Width / 8][4], const Fragments<Width>& rows,
                                    const Fragments<Width>& bases, int row) {
#pragma unroll
  for (int k = 0; k < Width / 16; ++k) {
    Word left[4];
    rows.left(left, row, 16 * k);
#pragma unroll
    for (int n = 0; n < Width / 16; ++n) {
      Word right[4];
      bases.right(right, 16 * n, 16 * k);
      multiply_add<T>(to[2 * n], left, right[0], right[1]);
      multiply_add<T>(to[2 * n + 1], left, right[2], right[3]);
    }
  }
}

/// The rows of which a warp has the coordinates, which are rounded here.
template <class T, int Width>
__device__ inline void combine_tile(float (&to)[Width / 8][4], const float (&c)[Width / 8][4],
                                    const Fragments<Width>& bases) {
#pragma unroll
  for (int k = 0; k < Width / 16; ++k) {
    const float(&x)[4] = c[2 * k];
    const float(&y)[4] = c[2 * k + 1];
    const Word left[4] = {pack_pair<T>(x[0], x[1]), pack_pair<T>(x[2], x[3]),
                          pack_pair<T>(y[0], y[1]), pack_pair<T>(y[2], y[3])};
#pragma unroll
    for (int n = 0; n < Width / 16; ++n) {
      Word right[4];
      bases.right_transposed(right, 16 * k, 16 * n);
      multiply_add<T>(to[2 * n], left, right[0], right[1]);
      multiply_add<T>(to[2 * n + 1], left, right[2], right[3]);
    }
  }
}

/// The sums of a tile's columns, a quarter of them a warp: every row of the accumulators holds
/// them.
template <class T, int Width>
__device__ inline void add_columns(float (&sums)[Width / 32][4], const Fragments<Width>& rows,
                                   int warp) {
  const Word one = pack_pair<T>(1, 1);
  const Word ones[4] = {one, one, one, one};
#pragma unroll
  for (int k = 0; k < memory_tensor_tokens / 16; ++k) {
#pragma unroll
    for (int n = 0; n < Width / 64; ++n) {
      Word right[4];
      rows.right_transposed(right, 16 * k, warp * (Width / 4) + 16 * n);
      multiply_add<T>(sums[2 * n], ones, right[0], right[1]);
      multiply_add<T>(sums[2 * n + 1], ones, right[2], right[3]);
    }
  }
}
/// Adds them to a row.
template <int Width>
__device__ inline void put_columns(float* to, const float (&sums)[Width / 32][4], int warp,
                                   int width) {
  const int lane = threadIdx.x & 31;
  if (lane >= 4) return;
#pragma unroll
  for (int n = 0; n < Width / 32; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int d = warp * (Width / 4) + 8 * n + 2 * lane + e;
      if (d < width) to[d] += sums[n][e];
    }
  }
}
template <int N>
__device__ inline void clear_columns(float (&sums)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[n][e] = 0;
  }
}

/// Writes a warp's 16 rows of a tile, tokens t0 to t0 + n - 1, which it has written itself.
template <class T, int Width>
__device__ inline void store_own_rows(const MemoryArguments<T>& a, int b, int h, int t0, int n,
                                      const Tile<Width>& tile) {
  const int lane = threadIdx.x & 31, first = static_cast<int>(threadIdx.x >> 5) * 16;
  __syncwarp();
  constexpr int pieces = Width / 8;
#pragma unroll 4
  for (int i = lane; i < 16 * pieces; i += 32) {
    const int row = first + i / pieces, piece = i % pieces, t = token_of(row);
    if (t >= n || 8 * piece >= a.dim) continue;
    T* const to = a.out.at(b, h, t0 + t) + 8 * piece;
    const uint4 words = tile.piece(row, piece);
    if (a.out_pieces) {
      *reinterpret_cast<uint4*>(to) = words;
      continue;
    }
    const Word each[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if (8 * piece + j < a.dim)
        to[j].bits = static_cast<std::uint16_t>(each[j / 2] >> 16 * (j % 2));
    }
  }
}

/// Writes a warp's 16 results, each row times its factor and with `own` of the query's own token,
/// by way of the queries' tile.
template <class T, int Width>
__device__ inline void store_tile(const MemoryArguments<T>& a, int b, int h, int t0, int n,
                                  const float (&out)[Width / 8][4], float factor0, float factor1,
                                  float own, std::uint64_t seen, const Tile<Width>& query,
                                  const Tile<Width>& tokens) {
  using N = Operand<T>;
  const int lane = threadIdx.x & 31, first = static_cast<int>(threadIdx.x >> 5) * 16;
  __syncwarp();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + 8 * half + (lane >> 2), t = token_of(row);
    const float factor = half == 0 ? factor0 : factor1;
    const bool hidden = own != 0 && t < n && (seen >> t & 1) == 0;  // not in the tile
#pragma unroll
    for (int i = 0; i < Width / 8; ++i) {
      const int column = 8 * i + 2 * (lane & 3);
      float low = out[i][2 * half] * factor, high = out[i][2 * half + 1] * factor;
      if (hidden) {
        const T* const from = a.tokens.at(b, h, t0 + t) + column;
        if (column < a.dim) low += own * to_float(from[0]);
        if (column + 1 < a.dim) high += own * to_float(from[1]);
      } else if (own != 0) {
        const Word pair = tokens.pair(row, column);
        low = fmaf(own, N::low(pair), low);
        high = fmaf(own, N::high(pair), high);
      }
      query.pair(row, column) = pack_pair<T>(low, high);
    }
  }
  store_own_rows<T, Width>(a, b, h, t0, n, query);
}

}  // namespace attnbench::kernels::cuda
