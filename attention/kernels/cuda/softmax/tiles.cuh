// What the tensor-core kernels of the softmax family share: tiles of rows in shared memory, the
// products over them, and which score is hidden.
#pragma once

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/mma_sm80.cuh"
#include "attention/kernels/cuda/softmax/shape.hpp"

namespace attnbench::kernels::cuda {

/// The shared memory that a block has on every card from Ampere on (8.6, 8.9 and 12 have no more).
constexpr int least_shared = 99 * 1024;

/// Rows of `Width` 16-bit numbers in shared memory, begun on 128 bytes. The 16-byte chunks of a row
/// are permuted by its number, so that eight rows at one column lie in different banks.
template <int Width>
struct SharedTile {
  static_assert(Width % 64 == 0);
  static constexpr int row_bytes = 2 * Width;

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
/// last row or past the width, a multiple of 8, becomes 0. Done when the copies committed next have
/// been waited for.
template <int Tile, int Width, int Threads, class T>
__device__ inline void load_rows(unsigned char* tile, const HeadRows<T>& rows, int row0) {
  constexpr int chunks = Width / 8;
  constexpr int pass_rows = Threads / chunks;
  static_assert(Tile % pass_rows == 0);
  const int chunk = static_cast<int>(threadIdx.x) % chunks;
  const bool within = 8 * chunk < rows.width;
  int row = static_cast<int>(threadIdx.x) / chunks;
  int batch = rows.batch;
  keep_here(batch);
  const T* head = rows.rows.at(batch, rows.head, 0);
  const unsigned address = shared_address(tile);
#pragma unroll
  for (int pass = 0; pass < Tile / pass_rows; ++pass) {
    const bool there = row0 + row < rows.count && within;
    const T* from = head + ((row0 + row) * rows.rows.row_stride + 8 * chunk);
    // Nothing is read where nothing counts.
    copy_async(address + SharedTile<Width>::at(row, chunk), there ? from : head, there ? 16 : 0);
    row += pass_rows;
    keep_here(row);
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

/// Puts `hidden` where a query does not see a key. Rows are queries and columns keys, or with
/// `KeyRows` the other way round; `row` and `column` are the lane's first ones.
template <bool KeyRows, int MTiles, int NTiles>
__device__ inline void hide(float (&scores)[MTiles][NTiles][4], const Band& band,
                            const std::uint8_t* mask, int row, int column, float hidden) {
  keep_here(row);
  const auto real = [&](int s) { return mask == nullptr || (s < band.key_length && mask[s] != 0); };
#pragma unroll
  for (int n = 0; n < NTiles; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int c = column + 8 * n + e;
      const bool column_real = KeyRows || real(c);
#pragma unroll
      for (int m = 0; m < MTiles; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int r = row + 16 * m + 8 * half;
          const bool seen = KeyRows ? band.sees(c, r) && real(r) : column_real && band.sees(r, c);
          if (!seen) scores[m][n][2 * half + e] = hidden;
        }
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
/// and nothing past its last row or width; by way of `tile`, shared memory of the warp's own.
template <class T, int Width, int MTiles, int WidthTiles>
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
        *reinterpret_cast<std::uint32_t*>(tile + SharedTile<Width>::at(row, n) + lane % 4 * 4) =
            pack_pair<T>(sum[m][n][2 * half] * factor[m][half],
                         sum[m][n][2 * half + 1] * factor[m][half]);
      }
    }
  }
  __syncwarp();
  constexpr int chunks = Width / 8;
#pragma unroll 4
  for (int i = lane; i < 16 * MTiles * chunks; i += 32) {
    const int row = i / chunks, chunk = i % chunks;
    if (row0 + row >= count || 8 * chunk >= width) continue;
    *reinterpret_cast<uint4*>(to.at(b, h, row0 + row) + 8 * chunk) =
        *reinterpret_cast<const uint4*>(tile + SharedTile<Width>::at(row, chunk));
  }
}

/// Whether asynchronous copies of 16 bytes reach every row.
template <class T>
bool aligned(const Rows<T>& rows, int width) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.row_stride % 8 == 0 &&
         rows.head_stride % 8 == 0 && rows.batch_stride % 8 == 0 && width % 8 == 0;
}
template <class T>
bool aligned(const SoftmaxArguments<T>& arrays, const SoftmaxShape& shape) {
  return aligned(arrays.q, shape.head_dim) && aligned(arrays.k, shape.head_dim) &&
         aligned(arrays.v, shape.value_dim) && aligned(arrays.out, shape.value_dim);
}

/// The width of the tiles: 64 or 128 columns hold both; 0 where neither does.
inline int tile_width(const SoftmaxShape& shape) {
  const int width = Band::greater(shape.head_dim, shape.value_dim);
  return width <= 64 ? 64 : width <= 128 ? 128 : 0;
}

}  // namespace attnbench::kernels::cuda
