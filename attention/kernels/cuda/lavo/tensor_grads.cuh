// A tile's gradients through the softmax of the running memory, and its part of the bases'
// gradient, on the tensor cores.
#pragma once

#include "attention/kernels/cuda/lavo/tensor_tile.cuh"

namespace attnbench::kernels::cuda {

/// Of the thread's two rows: c becomes scale dc, dm becomes du, u becomes m.
template <int Width>
__device__ inline void differentiate_tile(float (&c)[Width / 8][4], float (&dm)[Width / 8][4],
                                          float (&u)[Width / 8][4], const float* fence,
                                          float scale) {
  const int column = 2 * (threadIdx.x & 3);
  const float natural = scale * 0.69314718056F;
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {}, weighted[2] = {};
  const auto over_row = [](float& x, bool greatest) {
#pragma unroll
    for (int i = 1; i < 4; i *= 2) {
      const float y = __shfl_xor_sync(~0u, x, i);
      x = greatest ? fmaxf(x, y) : x + y;
    }
  };
  const auto logit = [&](int n, int e, const float2& wall) {
    return fmaf(scale * c[n][e], u[n][e], e % 2 == 0 ? wall.x : wall.y);
  };
#pragma unroll
  for (int n = 0; n < Width / 8; ++n) {
    const float2 wall = pair_at(fence + 8 * n + column);
#pragma unroll
    for (int e = 0; e < 4; ++e) top[e / 2] = fmaxf(top[e / 2], logit(n, e, wall));
  }
  over_row(top[0], true);
  over_row(top[1], true);
#pragma unroll
  for (int n = 0; n < Width / 8; ++n) {
    const float2 wall = pair_at(fence + 8 * n + column);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float weight = exp2_fast(logit(n, e, wall) - top[e / 2]);
      sum[e / 2] += weight;
      weighted[e / 2] = fmaf(weight, dm[n][e] * u[n][e], weighted[e / 2]);
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    over_row(sum[half], false);
    over_row(weighted[half], false);
    sum[half] = 1 / sum[half];
    weighted[half] *= sum[half];
  }
#pragma unroll
  for (int n = 0; n < Width / 8; ++n) {
    const float2 wall = pair_at(fence + 8 * n + column);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float weight = exp2_fast(logit(n, e, wall) - top[e / 2]) * sum[e / 2];
      const float own = u[n][e], asked = natural * c[n][e];
      const float grad = weight * (dm[n][e] * own - weighted[e / 2]);
      c[n][e] = natural * grad * own;
      dm[n][e] = dm[n][e] * weight + grad * asked;
      u[n][e] = weight * own;
    }
  }
}

/// A warp's accumulators, rounded, to its 16 rows of a tile.
template <class T, int Width>
__device__ inline void round_tile(const Tile<Width>& to, const float (&x)[Width / 8][4], int row) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int n = 0; n < Width / 8; ++n) {
    const int column = 8 * n + 2 * (lane & 3);
    to.pair(row + (lane >> 2), column) = pack_pair<T>(x[n][0], x[n][1]);
    to.pair(row + 8 + (lane >> 2), column) = pack_pair<T>(x[n][2], x[n][3]);
  }
}

/// sums += the product of a tile of coordinates, of which a warp takes 16 bases, and one of rows.
template <class T, int Width>
__device__ inline void add_outer_tile(float (&sums)[Width / 8][4], const Fragments<Width>& left,
                                      const Fragments<Width>& right, int base) {
#pragma unroll
  for (int k = 0; k < memory_tensor_tokens / 16; ++k) {
    Word x[4];
    left.left_transposed(x, 16 * k, base);
#pragma unroll
    for (int n = 0; n < Width / 16; ++n) {
      Word y[4];
      right.right_transposed(y, 16 * k, 16 * n);
      multiply_add<T>(sums[2 * n], x, y[0], y[1]);
      multiply_add<T>(sums[2 * n + 1], x, y[2], y[3]);
    }
  }
}

}  // namespace attnbench::kernels::cuda
