// The online softmax over accumulators of matrix products: Milakov and Gimelshein 2018.
//
// A row's sum is kept relative to a `base` that follows its greatest score, but only when that has
// grown by more than 2^8: weights up to 256 lose nothing, and the output is rarely rescaled.
#pragma once

#include <limits>

#include "attention/kernels/cuda/mma_sm80.cuh"

namespace attnbench::kernels::cuda {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The greatest of the four lanes that share a row.
__device__ inline float row_greatest(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ inline float row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

/// Scores become weights relative to each row's base; the output so far moves with the base.
template <int MTiles, int NTiles, int WidthTiles>
__device__ inline void weigh(float (&scores)[MTiles][NTiles][4], float (&base)[MTiles][2],
                             float (&sum)[MTiles][2], float (&out)[MTiles][WidthTiles][4],
                             float scale) {
  float factor[MTiles][2];
  bool moves = false;
#pragma unroll
  for (int m = 0; m < MTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float greatest = scores[m][0][2 * half];
#pragma unroll
      for (int n = 0; n < NTiles; ++n) {
        greatest = fmaxf(greatest, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
      }
      greatest = row_greatest(greatest) * scale;
      const bool grown = greatest > base[m][half] + 8;
      factor[m][half] = grown ? exp2_fast(base[m][half] - greatest) : 1;
      if (grown) base[m][half] = greatest;
      moves = moves || grown;
      sum[m][half] *= factor[m][half];
    }
  }
  if (__any_sync(~0u, moves)) {
#pragma unroll
    for (int m = 0; m < MTiles; ++m) {
#pragma unroll
      for (int n = 0; n < WidthTiles; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) out[m][n][e] *= factor[m][e / 2];
      }
    }
  }
#pragma unroll
  for (int m = 0; m < MTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // A row that has seen no key must not compute infinity minus infinity.
      const float from = base[m][half] == -infinity ? 0 : base[m][half];
#pragma unroll
      for (int n = 0; n < NTiles; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          scores[m][n][e] = exp2_fast(fmaf(scores[m][n][e], scale, -from));
          sum[m][half] += scores[m][n][e];
        }
      }
    }
  }
}

}  // namespace attnbench::kernels::cuda
