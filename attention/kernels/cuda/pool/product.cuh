// Rows times a head's matrix in fp32 on the CUDA cores: Y_{t,n} = sum_k W_{t,k} R_{k,n}, W a row's
// numbers or weights made of them, R averages or their gradients. A block takes 64 rows by 64
// columns, a thread 4 by 4 of them.
#pragma once

#include "attention/kernels/cuda/pool/gather.cuh"

namespace attnbench::kernels::cuda {

constexpr int product_depth = 16;  // numbers of a row taken in at once

template <class T>
struct PoolProduct {
  Rows<const T> left;  ///< [heads, length, inner]
  PoolWeights weights;
  const std::uint8_t* mask = nullptr;  ///< of the rows: those that are hidden give 0
  std::int64_t mask_stride = 0;
  const float* right = nullptr;  ///< of each head `inner * outer` numbers
  bool transposed = false;       ///< as [outer, inner], else as [inner, outer]
  int heads = 1, length = 0, inner = 0, outer = 0;
  Rows<T> out;            ///< [heads, length, outer]
  float* wide = nullptr;  ///< the same, dense; where it is null, `out` is written
  /// Where `grad_scale` is not 0: results are those of Y made gradients of the logits [heads,
  /// length, outer] of the weights `own`, grad_scale own (Y - less), `less` by row or by latent.
  float grad_scale = 0;
  Rows<const T> logits;
  PoolWeights own;
  const float *less_of_row = nullptr, *less_of_latent = nullptr;
};

/// Grid [squares of rows, squares of columns, heads], the last folded into y; 256 threads.
template <class T>
__global__ void __launch_bounds__(256) pool_product(const PoolProduct<T> a) {
  ATTNBENCH_SHARED(float, floats, 128);
  float* const lefts = floats;  // [product_depth, pool_square + 4]
  float* const rights =
      lefts + product_depth * (pool_square + 4);  // [product_depth, pool_square + 4]
  constexpr int stride = pool_square + 4;
  const int columns_of_squares = (a.outer + pool_square - 1) / pool_square;
  const int place = static_cast<int>(blockIdx.x);
  const int n0 = place % columns_of_squares * pool_square;
  const std::int64_t head = place / columns_of_squares, b = head / a.heads, h = head % a.heads;
  const int tid = static_cast<int>(threadIdx.x), tx = tid % 16, ty = tid / 16;
  const float* const right = a.right + head * a.inner * a.outer;
  const std::uint8_t* const mask = a.mask == nullptr ? nullptr : a.mask + b * a.mask_stride;

  for (std::int64_t t0 = std::int64_t{blockIdx.y} * pool_square; t0 < a.length;
       t0 += std::int64_t{gridDim.y} * pool_square) {
    float sums[4][4] = {};
    for (int k0 = 0; k0 < a.inner; k0 += product_depth) {
      __syncthreads();
      for (int i = tid; i < pool_square * product_depth; i += 256) {
        const int k = k0 + i % product_depth, row = i / product_depth;
        const std::int64_t t = t0 + row;
        const bool there = t < a.length && k < a.inner && (mask == nullptr || mask[t] != 0);
        lefts[i % product_depth * stride + row] =
            there ? a.weights.of(widen_number(a.left.at(b, h, t)[k]), head * a.inner + k,
                                 head * a.length + t)
                  : 0.F;
      }
      for (int i = tid; i < pool_square * product_depth; i += 256) {
        // Neighbours read what lies side by side.
        const int k = a.transposed ? i % product_depth : i / pool_square;
        const int n = a.transposed ? i / product_depth : i % pool_square;
        const bool there = k0 + k < a.inner && n0 + n < a.outer;
        const std::int64_t at = a.transposed ? std::int64_t{n0 + n} * a.inner + k0 + k
                                             : std::int64_t{k0 + k} * a.outer + n0 + n;
        rights[k * stride + n] = there ? right[at] : 0.F;
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < product_depth; ++k) {
        const float4 w = *reinterpret_cast<const float4*>(lefts + k * stride + 4 * ty);
        const float4 x = *reinterpret_cast<const float4*>(rights + k * stride + 4 * tx);
        const float by_row[4] = {w.x, w.y, w.z, w.w}, by_column[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[i][j] += by_row[i] * by_column[j];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t t = t0 + 4 * ty + i, row = head * a.length + t;
      if (t >= a.length) continue;
      const bool hidden = mask != nullptr && mask[t] == 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int n = n0 + 4 * tx + j;
        if (n >= a.outer) continue;
        float y = sums[i][j];
        if (a.grad_scale != 0) {
          const std::int64_t latent = head * a.outer + n;
          const float less =
              a.less_of_row != nullptr ? a.less_of_row[row] : a.less_of_latent[latent];
          y = a.grad_scale * a.own.of(widen_number(a.logits.at(b, h, t)[n]), latent, row) *
              (y - less);
        }
        if (hidden) y = 0;
        if (a.wide != nullptr) {
          a.wide[row * a.outer + n] = y;
        } else {
          narrow_number(y, a.out.at(b, h, t)[n]);
        }
      }
    }
  }
}

constexpr std::size_t product_bytes = sizeof(float) * 2 * product_depth * (pool_square + 4);

}  // namespace attnbench::kernels::cuda
