// The backward pass of the recurrent families: what is not a product. With a the sums of the keys'
// weights and n what results are divided by, w = P / n, and from X (see
// recurrent_gradient_scan.cuh)
//   product: gamma = -(w . X) / n,   dphi(q) = X / n + gamma a,   Y = gamma P;
//   pool:    dp = X / a,   delta = w . X,   dq = w (X - a delta),   Y = w dp (or w delta, where p
//   holds
//            the normalisers, whose own part in dk cancels the rest).
// dk comes of Z and of the sum of Y over the token and all later ones. All but P is as the CPU has
// it.
#pragma once

#include "attention/kernels/cuda/recurrent/scan.cuh"

namespace attnbench::kernels::cuda {

/// [batch, heads, length, latents] each, dense, but for whole [batch, heads, length].
struct GradientArrays {
  float *e = nullptr, *decay = nullptr, *w = nullptr, *total = nullptr;
  float* x = nullptr;  ///< X, then Y
  float* z = nullptr;
  float* whole = nullptr;  ///< n
};

/// e, decay, w, total and whole of every token. Grid [heads], one warp each; shared memory of
/// 2 latents floats.
template <class Family, class T, int Own>
__global__ void __launch_bounds__(32)
    gradient_weights(const RecurrentArguments<T> a, const GradientArrays arrays) {
  ATTNBENCH_SHARED(float, floats, 128);
  float* const query = floats;
  float* const key = floats + a.latents;
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t head = blockIdx.x, b = head / a.heads, h = head % a.heads;
  LaneState<Own> state;
#pragma unroll
  for (int i = 0; i < Own; ++i) {
    state.total[i] = 0;
    state.maximum[i] = -INFINITY;
  }
  for (int t = 0; t < a.length; ++t) {
    const bool seen = a.mask == nullptr || a.mask[b * a.mask_stride + t] != 0;
    for (int l = lane; l < a.latents; l += 32) {
      query[l] = widen_number(a.query.at(b, h, t)[l]);
      key[l] = widen_number(a.key.at(b, h, t)[l]);
    }
    __syncwarp();
    float e[Own], decay[Own], p[Own];
    float whole =
        take_token<Family, Own>(query, key, seen, a.latents, a.kind, a.normalised, a.scale,
                                decay_of_token<Family>(a, b, h, t), state, e, decay, p);
    if (a.normalised) whole += a.epsilon;
    const float by = whole == 0 ? 0.F : 1 / whole;
    const std::int64_t row = head * a.length + t;
    if (lane == 0) arrays.whole[row] = whole;
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int l = lane + 32 * i;
      if (l >= a.latents) continue;
      const std::int64_t at = row * a.latents + l;
      arrays.e[at] = e[i];
      if (Family::decays) arrays.decay[at] = decay[i];
      arrays.w[at] = p[i] * by;
      // As take_token has it.
      arrays.total[at] = Family::pools && !(state.total[i] > 0) ? 1.F : state.total[i];
    }
    __syncwarp();
  }
}

/// elu(x) + 1 has the derivative min(phi, 1).
__device__ inline float elu_grad(float x) { return x > 0 ? 1.F : expf(x); }

/// dLoss/dquery, and Y in the place of X. A warp a token; `rows` = batch * heads * length.
template <class Family, class T>
__global__ void __launch_bounds__(256)
    gradient_queries(const RecurrentArguments<T> a, const GradientArrays arrays,
                     const Rows<T> d_query, std::int64_t rows) {
  const int lane = threadIdx.x & 31;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * 8 + (threadIdx.x >> 5);
  if (row >= rows) return;
  const std::int64_t head = row / a.length, t = row % a.length;
  const std::int64_t b = head / a.heads, h = head % a.heads, begin = row * a.latents;
  float dot = 0;
  for (int l = lane; l < a.latents; l += 32) dot += arrays.w[begin + l] * arrays.x[begin + l];
  dot = warp_sum(dot);
  const float whole = arrays.whole[row], by = whole == 0 ? 0.F : 1 / whole;
  for (int l = lane; l < a.latents; l += 32) {
    const float x = arrays.x[begin + l], w = arrays.w[begin + l], total = arrays.total[begin + l];
    float dq, y;
    if constexpr (Family::pools) {
      const float dp = total > 0 ? x / total : 0.F;
      const bool weights = a.kind == static_cast<int>(PoolQuery::weights);
      const bool inside = a.kind == static_cast<int>(PoolQuery::logits_plus_z);
      dq = weights ? dp : a.scale * ln_of_2 * w * (x - total * dot);
      y = w * (inside ? dot : dp);
    } else {
      const float gamma = a.normalised ? -dot * by : 0.F;
      const bool elu = a.kind == static_cast<int>(ProductFeature::elu_plus_one);
      dq = (x * by + gamma * total) * (elu ? elu_grad(widen_number(a.query.at(b, h, t)[l])) : 1.F);
      y = gamma * whole * w;
    }
    arrays.x[begin + l] = y;
    narrow_number(dq, d_query.at(b, h, t)[l]);
  }
}

/// dLoss/dkey. A thread a latent of a head, from the last token to the first.
template <class Family, class T>
__global__ void __launch_bounds__(128)
    gradient_keys(const RecurrentArguments<T> a, const GradientArrays arrays, const Rows<T> d_key,
                  std::int64_t latents) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= latents) return;
  const std::int64_t head = i / a.latents, l = i % a.latents;
  const std::int64_t b = head / a.heads, h = head % a.heads;
  float later = 0, decay = 0;
  for (int t = a.length - 1; t >= 0; --t) {
    const std::int64_t at = (head * a.length + t) * a.latents + l;
    float dk;
    if constexpr (Family::pools) {
      later = arrays.x[at] + decay * later;
      decay = arrays.decay[at];
      dk = a.scale * ln_of_2 * arrays.e[at] * (arrays.z[at] - later);
    } else {
      later += arrays.x[at];
      const bool elu = a.kind == static_cast<int>(ProductFeature::elu_plus_one);
      dk = (arrays.z[at] + later) * (elu ? elu_grad(widen_number(a.key.at(b, h, t)[l])) : 1.F);
    }
    const bool seen = a.mask == nullptr || a.mask[b * a.mask_stride + t] != 0;
    narrow_number(seen ? dk : 0.F, d_key.at(b, h, t)[l]);
  }
}

}  // namespace attnbench::kernels::cuda
