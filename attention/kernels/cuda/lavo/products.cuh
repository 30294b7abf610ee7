// Products of tiles of floats in shared memory, in squares of 4 x 4 a thread. Sizes are known at
// run time only; rows begin on 16 bytes, and all counts are filled up to multiples of 4.
#pragma once

#include "attention/kernels/cuda/lavo/layout.hpp"

namespace attnbench::kernels::cuda {

__device__ inline float4 four_at(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}

__device__ inline void add_four(float (&sum)[4], float by, const float4& x) {
  sum[0] = fmaf(by, x.x, sum[0]);
  sum[1] = fmaf(by, x.y, sum[1]);
  sum[2] = fmaf(by, x.z, sum[2]);
  sum[3] = fmaf(by, x.w, sum[3]);
}

/// put(i, j, sum over d of a[i, d] b[j, d]) for m rows of a and n of b.
template <class Put>
__device__ inline void rows_by_rows(int m, int n, int depth, const float* a, int a_stride,
                                    const float* b, int b_stride, const Put& put) {
  const int across = n / 4;
  for (int square = threadIdx.x; square < m / 4 * across; square += memory_threads) {
    const int i = square / across * 4, j = square % across;
    float sum[4][4] = {};
#pragma unroll 2
    for (int d = 0; d < depth; d += 4) {
      float4 left[4], right[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        left[e] = four_at(a + (i + e) * a_stride + d);
        right[e] = four_at(b + (j + e * across) * b_stride + d);
      }
#pragma unroll
      for (int p = 0; p < 4; ++p) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          float& to = sum[p][q];
          to = fmaf(left[p].x, right[q].x, to);
          to = fmaf(left[p].y, right[q].y, to);
          to = fmaf(left[p].z, right[q].z, to);
          to = fmaf(left[p].w, right[q].w, to);
        }
      }
    }
#pragma unroll
    for (int p = 0; p < 4; ++p) {
#pragma unroll
      for (int q = 0; q < 4; ++q) put(i + p, j + q * across, sum[p][q]);
    }
  }
}

/// put(i, j, four sums over k of a[i, k] b[k, j…]) for m rows and n columns, `depth` of them in
/// all.
template <class Put>
__device__ inline void rows_by_columns(int m, int n, int depth, const float* a, int a_stride,
                                       const float* b, int b_stride, const Put& put) {
  const int across = n / 4;
  for (int square = threadIdx.x; square < m / 4 * across; square += memory_threads) {
    const int i = square / across * 4, j = square % across * 4;
    float sum[4][4] = {};
#pragma unroll 2
    for (int k = 0; k < depth; k += 4) {
      float4 left[4], right[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        left[e] = four_at(a + (i + e) * a_stride + k);
        right[e] = four_at(b + (k + e) * b_stride + j);
      }
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        add_four(sum[p], left[p].x, right[0]);
        add_four(sum[p], left[p].y, right[1]);
        add_four(sum[p], left[p].z, right[2]);
        add_four(sum[p], left[p].w, right[3]);
      }
    }
#pragma unroll
    for (int p = 0; p < 4; ++p) put(i + p, j, sum[p]);
  }
}

/// sum[p][…] += sum over t < depth of a[t, i + p] b[t, j…].
__device__ inline void columns_by_columns(float (&sum)[4][4], int depth, const float* a,
                                          int a_stride, const float* b, int b_stride, int i,
                                          int j) {
#pragma unroll 4
  for (int t = 0; t < depth; ++t) {
    const float4 left = four_at(a + t * a_stride + i);
    const float4 right = four_at(b + t * b_stride + j);
    add_four(sum[0], left.x, right);
    add_four(sum[1], left.y, right);
    add_four(sum[2], left.z, right);
    add_four(sum[3], left.w, right);
  }
}

}  // namespace attnbench::kernels::cuda
