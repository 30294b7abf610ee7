// States between segments and calls: copies of what one block writes while others still read it,
// and from the states of segments alone to those of all tokens before each border.
#pragma once

#include "attention/kernels/cuda/recurrent/families.cuh"

namespace attnbench::kernels::cuda {

/// Null pointers are left out.
[[maybe_unused]] static __global__ void copy_state(RecurrentState from, RecurrentState to,
                                                   std::int64_t rows, std::int64_t sums) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows && from.total != nullptr) to.total[i] = from.total[i];
  if (i < rows && from.maximum != nullptr) to.maximum[i] = from.maximum[i];
  if (i < sums && from.sum != nullptr) to.sum[i] = from.sum[i];
}

/// Each thread takes one number of a head's state through all borders: `alone.sum` [heads, borders,
/// latents, value_dim] is replaced, totals and maxima, which many read, go to `through`. A grid of
/// [heads, numbers / threads], numbers = latents * (value_dim + 1).
template <bool Decays>
__global__ void pass_borders(RecurrentState alone, RecurrentState through, int borders, int latents,
                             int value_dim) {
  constexpr int ahead = 8;  // loads under way at once
  const int i = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const int sums = latents * value_dim;
  if (i >= sums + latents) return;
  const bool is_sum = i < sums;
  const int l = is_sum ? i / value_dim : i - sums;
  const std::int64_t slot = static_cast<std::int64_t>(blockIdx.x) * borders;
  const std::int64_t stride = is_sum ? sums : latents;
  const float* const from = is_sum ? alone.sum + slot * sums + i : alone.total + slot * latents + l;
  float* const to = is_sum ? alone.sum + slot * sums + i : through.total + slot * latents + l;
  float x = 0, maximum = -INFINITY;
  for (int j0 = 0; j0 < borders; j0 += ahead) {
    float next[ahead], maxima[ahead];
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      if (j0 + j >= borders) continue;
      next[j] = from[(j0 + j) * stride];
      if (Decays) maxima[j] = alone.maximum[(slot + j0 + j) * latents + l];
    }
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      if (j0 + j >= borders) continue;
      if constexpr (Decays) {
        const float most = fmaxf(maximum, maxima[j]), base = most == -INFINITY ? 0.F : most;
        x = x * exp2_fast(maximum - base) + next[j] * exp2_fast(maxima[j] - base);
        maximum = most;
        if (!is_sum) through.maximum[(slot + j0 + j) * latents + l] = most;
      } else {
        x += next[j];
      }
      to[(j0 + j) * stride] = x;
    }
  }
}

/// The same from the last border to the first, in place: `alone` are the states of the segments
/// behind the borders, which decay by what the maxima before their first chunks, `maximum` [heads,
/// chunks, latents], rise from one to the next.
template <bool Decays>
__global__ void pass_borders_back(RecurrentState alone, const float* maximum, int borders,
                                  int chunks, int segment_chunks, int latents, int value_dim) {
  const int i = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const int sums = latents * value_dim;
  if (i >= sums + latents) return;
  const bool is_sum = i < sums;
  const std::int64_t head = blockIdx.x, stride = is_sum ? sums : latents;
  float* const at = is_sum ? alone.sum + head * borders * sums + i
                           : alone.total + head * borders * latents + i - sums;
  const int l = is_sum ? i / value_dim : i - sums;
  float x = 0, next = -INFINITY;
  for (int j = borders - 1; j >= 0; --j) {
    float decay = 1;
    if constexpr (Decays) {
      const std::int64_t chunk = head * chunks + std::int64_t{j + 1} * segment_chunks;
      const float most = maximum[chunk * latents + l];
      decay = next == -INFINITY ? 0.F : exp2_fast(most - next);
      next = most;
    }
    x = at[j * stride] + decay * x;
    at[j * stride] = x;
  }
}

}  // namespace attnbench::kernels::cuda
