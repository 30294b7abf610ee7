// From the states of segments to the averages of all tokens, and what their latents add to logits;
// or from gradients of segments to those of the averages.
#pragma once

#include "attention/kernels/cuda/recurrent/arguments.cuh"
#include "attention/kernels/cuda/recurrent/scan.cuh"
#include "attention/kernels/cuda/pool/plan.hpp"

namespace attnbench::kernels::cuda {

/// Where whole_pool_read.cuh wants the averages of a latent among those of a read_latents group: so
/// that the numbers that a thread loads side by side are the ones it multiplies.
__device__ inline int read_place(int latent) {
  const int half = latent >> 5 & 1, quad = latent >> 3 & 3, step = latent >> 1 & 3;
  return (latent & ~63) + 16 * step + 8 * half + 2 * quad + (latent & 1);
}

template <class Number>
struct PoolMerge {
  /// States of segments, group after group of latents: [groups][heads, segments, of the group].
  RecurrentState from;
  int group = 1;  ///< latents of a group but the last
  int segments = 1, latents = 0, value_dim = 0;
  std::int64_t heads = 0;
  /// fp32: [heads, latents, value_dim]. 16 bits: [heads, padded, stride], at read_place or, where
  /// they are `ordered`, in order, with zeros elsewhere.
  Number* out = nullptr;
  int padded = 0, stride = 0;
  bool ordered = false;
  /// Where there are maxima the sums are divided by their totals: base-2 logarithms of the totals
  /// of exp2(logit), minus the maxima, and 1 / the totals of what is measured against these.
  float *normaliser = nullptr, *minus_maximum = nullptr, *gain = nullptr;  ///< [heads, latents]
  float lift = 0;  ///< by how much the greatest logits are above what stands for maxima in `from`
  /// The total itself or, with `dotted`, the product of the result with that row, [heads, latents].
  float* total = nullptr;
  const float* dotted = nullptr;  ///< [heads, latents, value_dim]
};

constexpr int merge_warps = 8, merge_columns = 128;

/// Warps that share the segments of one latent: a power of two.
inline int merge_share(int segments) {
  int share = 1;
  while (share < merge_warps && share < segments) share *= 2;
  return share;
}

/// Grid [heads, (padded) latents * share / merge_warps].
template <class Number>
__global__ void __launch_bounds__(32 * merge_warps)
    pool_merge(const PoolMerge<Number> a, int share) {
  constexpr bool wide = std::is_same_v<Number, float>;
  ATTNBENCH_SHARED(float, parts, 128);  // [merge_warps, merge_columns]
  const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x >> 5);
  const int part = warp % share;
  const int l = static_cast<int>(blockIdx.y) * (merge_warps / share) + warp / share;
  const bool real = l < a.latents;
  const std::int64_t head = blockIdx.x, row = head * a.latents + l;
  const int first = real ? l / a.group * a.group : 0, width = min(a.group, a.latents - first);
  // The latent's state of segment 0; those of the groups before come first.
  const std::int64_t origin =
      a.heads * a.segments * first + head * a.segments * width + (real ? l - first : 0);
  const auto at = [&](int s) { return origin + std::int64_t{s} * width; };

  float most = -INFINITY, total = 0;
  if (a.from.maximum != nullptr) {
    for (int s = lane; s < a.segments; s += 32) most = fmaxf(most, a.from.maximum[at(s)]);
    most = warp_greatest(most);
  }
  const float base = most == -INFINITY ? 0.F : most;
  const auto decay = [&](int s) {
    return a.from.maximum == nullptr ? 1.F : exp2f(a.from.maximum[at(s)] - base);
  };
  if (a.from.total != nullptr) {
    for (int s = lane; s < a.segments; s += 32) total += decay(s) * a.from.total[at(s)];
    total = warp_sum(total);
  }
  float gain = 1;
  if (a.from.maximum != nullptr) gain = total > 0 ? 1 / total : 0.F;
  if (real && part == 0 && lane == 0) {
    if (a.minus_maximum != nullptr) a.minus_maximum[row] = -(base + a.lift);
    if (a.gain != nullptr) a.gain[row] = gain * exp2f(a.lift);
    if (a.normaliser != nullptr) a.normaliser[row] = total > 0 ? base + log2f(total) : -INFINITY;
    if (a.total != nullptr && a.dotted == nullptr) a.total[row] = total;
  }

  const int columns = wide ? a.value_dim : a.stride;
  float dot = 0;
  for (int d0 = 0; d0 < columns; d0 += merge_columns) {
    float sums[merge_columns / 32] = {};
    if (real) {
#pragma unroll 4
      for (int s = part; s < a.segments; s += share) {
        const float by = decay(s) * gain;
        const float* const from = a.from.sum + at(s) * a.value_dim;
#pragma unroll
        for (int j = 0; j < merge_columns / 32; ++j) {
          const int d = d0 + lane + 32 * j;
          if (d < a.value_dim) sums[j] += by * from[d];
        }
      }
    }
    if (share > 1) {
      __syncthreads();
#pragma unroll
      for (int j = 0; j < merge_columns / 32; ++j) {
        parts[warp * merge_columns + lane + 32 * j] = sums[j];
      }
      __syncthreads();
      if (part != 0) continue;
      for (int other = 1; other < share; ++other) {
#pragma unroll
        for (int j = 0; j < merge_columns / 32; ++j) {
          sums[j] += parts[(warp + other) * merge_columns + lane + 32 * j];
        }
      }
    }
#pragma unroll
    for (int j = 0; j < merge_columns / 32; ++j) {
      const int d = d0 + lane + 32 * j;
      if (wide) {
        if (!real || d >= a.value_dim) continue;
        narrow_number(sums[j], a.out[row * a.value_dim + d]);
        if (a.dotted != nullptr) dot += sums[j] * a.dotted[row * a.value_dim + d];
      } else if (l < a.padded && d < a.stride) {
        const int to = a.ordered ? l : read_place(l);
        narrow_number(sums[j], a.out[(head * a.padded + to) * a.stride + d]);
      }
    }
  }
  if (a.dotted == nullptr) return;
  dot = warp_sum(dot);
  if (real && part == 0 && lane == 0) a.total[row] = dot;
}

template <class Number>
void launch_merge(const PoolMerge<Number>& merge, Stream stream) {
  const int share = merge_share(merge.segments), each = merge_warps / share;
  const int rows = std::is_same_v<Number, float> ? merge.latents : merge.padded;
  launch(pool_merge<Number>,
         dim3(static_cast<unsigned>(merge.heads), static_cast<unsigned>((rows + each - 1) / each)),
         dim3(32 * merge_warps), sizeof(float) * merge_warps * merge_columns, stream, merge, share);
}

}  // namespace attnbench::kernels::cuda
