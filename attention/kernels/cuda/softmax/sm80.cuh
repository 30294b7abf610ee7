// What the tensor-core kernels of the softmax family share: tiles of rows in shared memory, the
// products over them, and which score is hidden.
#pragma once

#include "attention/kernels/cuda/mma_sm80.cuh"
#include "attention/kernels/cuda/softmax/band.hpp"

namespace attnbench::kernels::cuda {

/// Rows of `Width` 16-bit numbers in shared memory, begun on 128 bytes. The 16-byte chunks of a row
/// are permuted by its number, so that eight rows at one column lie in different banks.
template <int Width>
struct SharedTile {
  static_assert(Width % 64 == 0);
  static constexpr int row_bytes = 2 * Width;
  static constexpr int chunks = Width / 8;

  static __device__ int at(int row, int chunk) {
    return row * row_bytes + ((chunk ^ (row & 7)) << 4);
  }
  /// The address of (row, column) steps away from a lane's own; rows in eights, columns in
  /// sixteens. The permutation makes the step an exclusive or.
  static __device__ unsigned step(unsigned lane, int row, int column) {
    return (lane ^ ((2 * column) & 127)) + ((2 * column) & ~127) + row * row_bytes;
  }
  /// A lane's address for a left operand held as [rows, depth], and for a right operand held as
  /// [depth, columns], which is loaded transposed: 16 x 16 at (row, 0).
  static __device__ unsigned lane_straight(unsigned tile, int row) {
    const int lane = threadIdx.x % 32;
    return tile + at(row + lane % 16, lane / 16);
  }
  /// The same for a right operand held as [columns, depth].
  static __device__ unsigned lane_crossed(unsigned tile, int row) {
    const int lane = threadIdx.x % 32;
    return tile + at(row + lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }
};

/// The rows of one head, or of one key head.
template <class T>
struct HeadRows {
  const Rows<const T>& rows;
  int batch;
  int head;
  int count;
  int width;
};

/// The compiler neither computes x ahead of this point nor keeps what is derived from it across a
/// loop: addresses and bounds computed anew cost little, registers held for them cost spills.
__device__ inline void keep_here(int& x) { asm volatile("" : "+r"(x)); }
__device__ inline void keep_here(unsigned& x) { asm volatile("" : "+r"(x)); }

/// Begins to copy rows row0 to row0 + Tile - 1 into a tile of `Width` columns; what lies past the
/// last row or past the width becomes 0. Without Aligned the rows may begin anywhere, and the copy
/// is done when the function returns; with it, when the copies committed next have been waited for.
template <int Tile, int Width, int Threads, bool Aligned, class T>
__device__ inline void load_rows(unsigned char* tile, const HeadRows<T>& rows, int row0,
                                 int thread) {
  constexpr int chunks = Width / 8;
  constexpr int pass_rows = Threads / chunks;
  static_assert(Tile % pass_rows == 0);
  const int chunk = thread % chunks;
  const int columns = rows.width - 8 * chunk;
  int row = thread / chunks;
  int batch = rows.batch;
  keep_here(batch);
  const T* head = rows.rows.at(batch, rows.head, 0);
  const unsigned address = shared_address(tile);
#pragma unroll(Aligned ? Tile / pass_rows : 1)
  for (int pass = 0; pass < Tile / pass_rows; ++pass) {
    const bool there = row0 + row < rows.count && columns > 0;
    const int to = SharedTile<Width>::at(row, chunk);
    const T* from = head + ((row0 + row) * rows.rows.row_stride + 8 * chunk);
    if constexpr (Aligned) {
      // The width is a multiple of 8; nothing is read where nothing counts.
      copy_async(address + to, there ? from : head, there ? 16 : 0);
    } else {
      std::uint16_t words[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) words[j] = there && j < columns ? from[j].bits : std::uint16_t{0};
      *reinterpret_cast<uint4*>(tile + to) =
          make_uint4(words[0] | words[1] << 16, words[2] | words[3] << 16,
                     words[4] | words[5] << 16, words[6] | words[7] << 16);
    }
    row += pass_rows;
    keep_here(row);
  }
}

/// Changes the sign of every number in a lane's share of `rows` rows of a tile: a negative scale is
/// a positive one with -q, and the greatest product is then the greatest logit.
template <int Rows_, int Width>
__device__ inline void negate_rows(unsigned char* tile, int thread, int threads) {
  for (int i = thread; i < Rows_ * Width / 2; i += threads) {
    reinterpret_cast<std::uint32_t*>(tile)[i] ^= 0x80008000u;
  }
}

/// sum += a b^T over `Width` columns. Both are tiles of rows: `a` a lane_straight, `b` a
/// lane_crossed.
template <class T, int Width, int MTiles, int NTiles>
__device__ inline void multiply_rows(float (&sum)[MTiles][NTiles][4], unsigned a, unsigned b) {
  using Shared = SharedTile<Width>;
  keep_here(a);
  keep_here(b);
#pragma unroll
  for (int k = 0; k < Width / 16; ++k) {
    std::uint32_t left[MTiles][4];
#pragma unroll
    for (int m = 0; m < MTiles; ++m) load_matrices(left[m], Shared::step(a, 16 * m, 16 * k));
#pragma unroll
    for (int n = 0; n < NTiles / 2; ++n) {
      std::uint32_t right[4];
      load_matrices(right, Shared::step(b, 16 * n, 16 * k));
#pragma unroll
      for (int m = 0; m < MTiles; ++m) {
        multiply_add<T>(sum[m][2 * n], left[m], right[0], right[1]);
        multiply_add<T>(sum[m][2 * n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

/// sum += weights b, where weights are accumulators (rounded here) and b, a lane_straight, is a
/// tile of as many rows as the weights have columns.
template <class T, int Width, int MTiles, int NTiles, int WidthTiles>
__device__ inline void multiply_weights(float (&sum)[MTiles][WidthTiles][4],
                                        const float (&weights)[MTiles][NTiles][4], unsigned b) {
  using Shared = SharedTile<Width>;
  static_assert(WidthTiles == Width / 8);
  keep_here(b);
#pragma unroll
  for (int k = 0; k < NTiles / 2; ++k) {
    std::uint32_t left[MTiles][4];
#pragma unroll
    for (int m = 0; m < MTiles; ++m) {
      left[m][0] = pack_pair<T>(weights[m][2 * k][0], weights[m][2 * k][1]);
      left[m][1] = pack_pair<T>(weights[m][2 * k][2], weights[m][2 * k][3]);
      left[m][2] = pack_pair<T>(weights[m][2 * k + 1][0], weights[m][2 * k + 1][1]);
      left[m][3] = pack_pair<T>(weights[m][2 * k + 1][2], weights[m][2 * k + 1][3]);
    }
#pragma unroll
    for (int n = 0; n < WidthTiles / 2; ++n) {
      std::uint32_t right[4];
      load_matrices_transposed(right, Shared::step(b, 16 * k, 16 * n));
#pragma unroll
      for (int m = 0; m < MTiles; ++m) {
        multiply_add<T>(sum[m][2 * n], left[m], right[0], right[1]);
        multiply_add<T>(sum[m][2 * n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

/// The mask of batch row b, or null where all keys are real.
template <class T>
__device__ inline const std::uint8_t* key_mask(const SoftmaxArguments<T>& arrays, int b) {
  return arrays.key_mask == nullptr ? nullptr : arrays.key_mask + b * arrays.mask_stride;
}

/// Puts `hidden` where a query does not see a key. Rows are queries, columns keys; `t` and `s` are
/// the lane's first ones.
template <int MTiles, int NTiles>
__device__ inline void hide(float (&scores)[MTiles][NTiles][4], const Band& band,
                            const std::uint8_t* mask, int t, int s, float hidden) {
  keep_here(t);
#pragma unroll
  for (int n = 0; n < NTiles; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int key = s + 8 * n + e;
      const bool real = mask == nullptr || (key < band.key_length && mask[key] != 0);
#pragma unroll
      for (int m = 0; m < MTiles; ++m) {
        if (!real || !band.sees(t + 16 * m, key)) scores[m][n][e] = hidden;
        if (!real || !band.sees(t + 16 * m + 8, key)) scores[m][n][2 + e] = hidden;
      }
    }
  }
}

template <int MTiles, int NTiles>
__device__ inline void clear(float (&sum)[MTiles][NTiles][4]) {
#pragma unroll
  for (int m = 0; m < MTiles; ++m) {
#pragma unroll
    for (int n = 0; n < NTiles; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[m][n][e] = 0;
    }
  }
}

/// Writes a warp's accumulators, times `factor[m][half]`, to rows row0, row0 + 1, … of an array,
/// and nothing past its last row or width. With Aligned by way of `tile`, shared memory of the
/// warp's own.
template <class T, int Width, bool Aligned, int MTiles, int WidthTiles>
__device__ inline void store_rows(const Rows<T>& to, int b, int h, int row0, int count, int width,
                                  const float (&sum)[MTiles][WidthTiles][4],
                                  const float (&factor)[MTiles][2], unsigned char* tile) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < MTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * m + 8 * half + lane / 4;
#pragma unroll
      for (int n = 0; n < WidthTiles; ++n) {
        const std::uint32_t pair = pack_pair<T>(sum[m][n][2 * half] * factor[m][half],
                                                sum[m][n][2 * half + 1] * factor[m][half]);
        if constexpr (Aligned) {
          *reinterpret_cast<std::uint32_t*>(tile + SharedTile<Width>::at(row, n) + lane % 4 * 4) =
              pair;
        } else {
          const int column = 8 * n + lane % 4 * 2;
          if (row0 + row >= count) continue;
          T* at = to.at(b, h, row0 + row) + column;
          if (column < width) at[0].bits = static_cast<std::uint16_t>(pair);
          if (column + 1 < width) at[1].bits = static_cast<std::uint16_t>(pair >> 16);
        }
      }
    }
  }
  if constexpr (Aligned) {
    __syncwarp();
    constexpr int chunks = Width / 8;
#pragma unroll 4
    for (int i = lane; i < 16 * MTiles * chunks; i += 32) {
      const int row = i / chunks;
      const int chunk = i % chunks;
      if (row0 + row >= count || 8 * chunk >= width) continue;
      *reinterpret_cast<uint4*>(to.at(b, h, row0 + row) + 8 * chunk) =
          *reinterpret_cast<const uint4*>(tile + SharedTile<Width>::at(row, chunk));
    }
  }
}

}  // namespace attnbench::kernels::cuda
