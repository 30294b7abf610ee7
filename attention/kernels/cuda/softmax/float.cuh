// Tiles of floats for the CUDA cores: 256 threads as 16 x 16, in shared memory rows of Width + 4
// numbers, so that 16-byte reads of eight rows at one column fall into different banks.
#pragma once

#include "attention/kernels/cuda/softmax/band.hpp"

namespace attnbench::kernels::cuda {

constexpr int float_threads = 256;

template <int Width>
constexpr int float_stride = Width + 4;

/// Rows row0 to row0 + Tile - 1; 0 past the last row and past the width.
template <int Tile, int Width>
__device__ inline void load_floats(float* tile, const Rows<const float>& rows, int b, int h,
                                   int row0, int count, int width) {
  const float* from = rows.at(b, h, 0);
#pragma unroll 4
  for (int i = threadIdx.x; i < Tile * Width; i += float_threads) {
    const int row = i / Width;
    const int d = i % Width;
    const bool there = row0 + row < count && d < width;
    tile[row * float_stride<Width> + d] = there ? from[(row0 + row) * rows.row_stride + d] : 0;
  }
}

/// sum[i][j] += the product of row (i of the thread's y) of a and row (16 j + the thread's x) of b.
template <int Width, int M, int N>
__device__ inline void multiply_float_rows(float (&sum)[M][N], const float* a, const float* b) {
  const int x = threadIdx.x % 16;
  const int y = threadIdx.x / 16;
#pragma unroll 4
  for (int d = 0; d < Width; d += 4) {
    float4 left[M];
#pragma unroll
    for (int i = 0; i < M; ++i) {
      left[i] = *reinterpret_cast<const float4*>(a + (y * M + i) * float_stride<Width> + d);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float4 right =
          *reinterpret_cast<const float4*>(b + (16 * j + x) * float_stride<Width> + d);
#pragma unroll
      for (int i = 0; i < M; ++i) {
        sum[i][j] = fmaf(left[i].x, right.x, sum[i][j]);
        sum[i][j] = fmaf(left[i].y, right.y, sum[i][j]);
        sum[i][j] = fmaf(left[i].z, right.z, sum[i][j]);
        sum[i][j] = fmaf(left[i].w, right.w, sum[i][j]);
      }
    }
  }
}

/// sum[i][c] += weights (M rows of the thread's y, `Count` columns, `Stride` apart) times the rows
/// of b; the thread holds columns 64 (c / 4) + 4 x + c % 4.
template <int Width, int Count, int Stride, int M, int Columns>
__device__ inline void multiply_float_weights(float (&sum)[M][Columns], const float* weights,
                                              const float* b) {
  static_assert(Columns == Width / 16);
  const int x = threadIdx.x % 16;
  const int y = threadIdx.x / 16;
#pragma unroll 4
  for (int k = 0; k < Count; ++k) {
    float left[M];
#pragma unroll
    for (int i = 0; i < M; ++i) left[i] = weights[(y * M + i) * Stride + k];
#pragma unroll
    for (int c = 0; c < Columns / 4; ++c) {
      const float4 right =
          *reinterpret_cast<const float4*>(b + k * float_stride<Width> + 64 * c + 4 * x);
#pragma unroll
      for (int i = 0; i < M; ++i) {
        sum[i][4 * c] = fmaf(left[i], right.x, sum[i][4 * c]);
        sum[i][4 * c + 1] = fmaf(left[i], right.y, sum[i][4 * c + 1]);
        sum[i][4 * c + 2] = fmaf(left[i], right.z, sum[i][4 * c + 2]);
        sum[i][4 * c + 3] = fmaf(left[i], right.w, sum[i][4 * c + 3]);
      }
    }
  }
}

/// The column of a thread's number c, as above.
__device__ inline int float_column(int c) { return 64 * (c / 4) + threadIdx.x % 16 * 4 + c % 4; }

}  // namespace attnbench::kernels::cuda
