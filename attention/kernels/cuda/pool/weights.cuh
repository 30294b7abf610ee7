// The weights of the whole pool in fp32: how a row of logits becomes weights, and what is summed
// over a row beforehand.
#pragma once

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/recurrent/scan.cuh"

namespace attnbench::kernels::cuda {

/// What the number x of token t and latent l weighs: x itself where it is `given`, else
///   exp2(scale x + shift_l - top_t) gain_l factor_t;
/// null pointers add and multiply nothing.
struct PoolWeights {
  bool given = false;
  float scale = 1;                ///< log2(e) included
  const float* shift = nullptr;   ///< [heads, latents]
  const float* gain = nullptr;    ///< [heads, latents]
  const float* top = nullptr;     ///< [heads, length]
  const float* factor = nullptr;  ///< [heads, length]

  __device__ float of(float x, std::int64_t latent, std::int64_t token) const {
    if (given) return x;
    const float add =
        (shift != nullptr ? shift[latent] : 0.F) - (top != nullptr ? top[token] : 0.F);
    float weight = exp2f(fmaf(x, scale, add));
    if (gain != nullptr) weight *= gain[latent];
    if (factor != nullptr) weight *= factor[token];
    return weight;
  }
};

/// The greatest exponent of each query and 1 / the sum of its weights, to [heads * length] `top`
/// and `factor`. A warp takes a row.
template <class T>
__global__ void weigh_rows(Rows<const T> query, PoolWeights weights, float* top, float* factor,
                           int heads, int length, int latents, std::int64_t rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x & 31;
  const std::int64_t head = row / length;
  const T* const x = query.at(head / heads, head % heads, row % length);
  const float* const shift = weights.shift == nullptr ? nullptr : weights.shift + head * latents;
  float most = -INFINITY;
  for (int l = lane; l < latents; l += 32) {
    most = fmaxf(most, fmaf(widen_number(x[l]), weights.scale, shift == nullptr ? 0.F : shift[l]));
  }
  most = warp_greatest(most);
  if (most == -INFINITY) most = 0;
  float sum = 0;
  for (int l = lane; l < latents; l += 32) {
    const float add = (shift == nullptr ? 0.F : shift[l]) - most;
    sum += exp2f(fmaf(widen_number(x[l]), weights.scale, add));
  }
  sum = warp_sum(sum);
  if (lane != 0) return;
  top[row] = most;
  factor[row] = sum > 0 ? 1 / sum : 0.F;
}

/// g_t . y_t of every query, to [heads * length] `to`; y is dense. A warp takes a row.
template <class T>
__global__ void dot_rows(Rows<const T> g, const float* y, float* to, int heads, int length,
                         int width, std::int64_t rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x & 31;
  const std::int64_t head = row / length;
  const T* const x = g.at(head / heads, head % heads, row % length);
  float sum = 0;
  for (int d = lane; d < width; d += 32) sum += widen_number(x[d]) * y[row * width + d];
  sum = warp_sum(sum);
  if (lane == 0) to[row] = sum;
}

}  // namespace attnbench::kernels::cuda
