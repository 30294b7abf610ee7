// Sums over tokens in fp32 on the CUDA cores: of each segment, S_l = sum_t w_{t,l} x_t for weights
// w made of logits. A block takes 64 latents by 64 columns, a thread 4 by 4 of them.
#pragma once

#include "attention/kernels/cuda/recurrent/arguments.cuh"
#include "attention/kernels/cuda/pool/averages.cuh"
#include "attention/kernels/cuda/pool/weights.cuh"

namespace attnbench::kernels::cuda {

template <class T>
struct PoolGather {
  Rows<const T> logits, columns;  ///< [heads, length, latents], [heads, length, value_dim]
  const std::uint8_t* mask = nullptr;
  std::int64_t mask_stride = 0;
  int heads = 1, length = 0, latents = 0, value_dim = 0;
  int segments = 1, segment_chunks = 1;  ///< of gather_tokens
  /// Whether w = exp2(weights.scale logit - m_l), m_l the greatest in the segment, kept in
  /// to.maximum, with the sums of w in to.total. Else w is as `weights` say, and to.total their
  /// sums times by[t], where there is one.
  bool own_maxima = false;
  PoolWeights weights;
  const float* by = nullptr;  ///< [heads * length]
  RecurrentState to;          ///< [heads * segments, latents (, value_dim)]
};

/// Grid [heads * squares of latents * squares of columns, segments]; 256 threads.
template <class T>
__global__ void __launch_bounds__(256) pool_gather(const PoolGather<T> a) {
  ATTNBENCH_SHARED(float, floats, 128);
  float* const weights = floats;                                 // [gather_tokens, pool_square]
  float* const columns = weights + gather_tokens * pool_square;  // [gather_tokens, pool_square]
  float* const decays = columns + gather_tokens * pool_square;   // [pool_square]
  float* const by = decays + pool_square;                        // [gather_tokens]
  const int rows_of_squares = (a.latents + pool_square - 1) / pool_square;
  const int columns_of_squares = (a.value_dim + pool_square - 1) / pool_square;
  int place = static_cast<int>(blockIdx.x);
  const int d0 = place % columns_of_squares * pool_square;
  place /= columns_of_squares;
  const int l0 = place % rows_of_squares * pool_square;
  const std::int64_t head = place / rows_of_squares, b = head / a.heads, h = head % a.heads;
  const int segment = static_cast<int>(blockIdx.y);
  const std::int64_t begin = std::int64_t{segment} * a.segment_chunks * gather_tokens;
  const std::int64_t end =
      min(std::int64_t{a.length}, begin + std::int64_t{a.segment_chunks} * gather_tokens);
  const std::uint8_t* const mask = a.mask == nullptr ? nullptr : a.mask + b * a.mask_stride;
  const int tid = static_cast<int>(threadIdx.x), tx = tid % 16, ty = tid / 16;
  const int latent = tid / 4, part = tid % 4;  // whose maximum and sum this thread follows
  float sums[4][4] = {}, total = 0, maximum = -INFINITY;

  for (std::int64_t t0 = begin; t0 < end; t0 += gather_tokens) {
    __syncthreads();
    for (int i = tid; i < gather_tokens * pool_square; i += 256) {
      const int column = i % pool_square, l = l0 + column, d = d0 + column;
      const std::int64_t t = t0 + i / pool_square;
      const bool seen = t < end && (mask == nullptr || mask[t] != 0);
      float weight = a.own_maxima ? -INFINITY : 0.F;
      if (seen && l < a.latents) {
        const float x = widen_number(a.logits.at(b, h, t)[l]);
        weight = a.own_maxima ? x * a.weights.scale
                              : a.weights.of(x, head * a.latents + l, head * a.length + t);
      }
      weights[i] = weight;
      columns[i] = seen && d < a.value_dim ? widen_number(a.columns.at(b, h, t)[d]) : 0.F;
    }
    if (a.by != nullptr && tid < gather_tokens) {
      by[tid] = t0 + tid < end ? a.by[head * a.length + t0 + tid] : 0.F;
    }
    __syncthreads();
    float decay = 1, sum = 0;
    if (a.own_maxima) {
      float next = maximum;
      for (int t = part; t < gather_tokens; t += 4)
        next = fmaxf(next, weights[t * pool_square + latent]);
      next = fmaxf(next, __shfl_xor_sync(~0u, next, 1));
      next = fmaxf(next, __shfl_xor_sync(~0u, next, 2));
      const float base = next == -INFINITY ? 0.F : next;
      decay = exp2f(maximum - base);
      maximum = next;
      for (int t = part; t < gather_tokens; t += 4) {
        float& weight = weights[t * pool_square + latent];
        weight = exp2f(weight - base);
        sum += weight;
      }
      if (part == 0) decays[latent] = decay;
    } else if (a.by != nullptr) {
      for (int t = part; t < gather_tokens; t += 4)
        sum += weights[t * pool_square + latent] * by[t];
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    total = decay * total + sum;
    __syncthreads();
    if (a.own_maxima) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] *= decays[4 * ty + i];
      }
    }
#pragma unroll 8
    for (int t = 0; t < gather_tokens; ++t) {
      const float4 w = *reinterpret_cast<const float4*>(weights + t * pool_square + 4 * ty);
      const float4 x = *reinterpret_cast<const float4*>(columns + t * pool_square + 4 * tx);
      const float left[4] = {w.x, w.y, w.z, w.w}, right[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += left[i] * right[j];
      }
    }
  }

  const std::int64_t slot = head * a.segments + segment;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int l = l0 + 4 * ty + i, d = d0 + 4 * tx + j;
      if (l < a.latents && d < a.value_dim) {
        a.to.sum[(slot * a.latents + l) * a.value_dim + d] = sums[i][j];
      }
    }
  }
  if (d0 != 0 || part != 0 || l0 + latent >= a.latents) return;
  const std::int64_t at = slot * a.latents + l0 + latent;
  if (a.to.total != nullptr) a.to.total[at] = total;
  if (a.own_maxima) a.to.maximum[at] = maximum;
}

constexpr std::size_t gather_bytes =
    sizeof(float) * (2 * gather_tokens * pool_square + pool_square + gather_tokens);

}  // namespace attnbench::kernels::cuda
