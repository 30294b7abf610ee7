// The recurrent families token by token in fp32 on the CUDA cores: exact but for rounding, for
// scores of any size. A warp holds four columns of the values, its lanes share the latents.
#pragma once

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/recurrent/families.cuh"

namespace attnbench::kernels::cuda {

constexpr int scan_warps = 8, scan_columns = 4, scan_tokens = 16;

__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) x += __shfl_xor_sync(~0u, x, i);
  return x;
}
__device__ inline float warp_greatest(float x) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
  return x;
}
__device__ inline float widen_number(float x) { return x; }
__device__ inline float widen_number(BFloat16 x) { return Operand<BFloat16>::low(x.bits); }
__device__ inline float widen_number(Half x) { return Operand<Half>::low(x.bits); }
__device__ inline void narrow_number(float x, float& to) { to = x; }
template <class T>
__device__ inline void narrow_number(float x, T& to) {
  to.bits = static_cast<std::uint16_t>(pack_pair<T>(x, 0));
}

/// What a lane knows of its latents: l = lane + 32 i.
template <int Own>
struct LaneState {
  float total[Own], maximum[Own];
};

/// One token: its e (0 where it is hidden), by how much the past decays (`by_token` where no maxima
/// say it), and the weights p; returns what the results are divided by, of the whole warp.
template <class Family, int Own>
__device__ inline float take_token(const float* query, const float* key, bool seen, int latents,
                                   int kind, bool normalised, float scale, float by_token,
                                   LaneState<Own>& state, float (&e)[Own], float (&decay)[Own],
                                   float (&p)[Own]) {
  const int lane = threadIdx.x & 31;
  float part = 0;
  if constexpr (Family::pools) {
    float most = -INFINITY;
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int l = lane + 32 * i;
      const float old = state.maximum[i];
      const float next = seen && l < latents ? fmaxf(old, key[l] * scale) : old;
      const float base = next == -INFINITY ? 0.F : next;
      decay[i] = exp2f(old - base);
      e[i] = seen && l < latents ? exp2f(key[l] * scale - base) : 0.F;
      state.maximum[i] = next;
      state.total[i] = decay[i] * state.total[i] + e[i];
      p[i] = l < latents ? query[l] : 0.F;
      if (kind == static_cast<int>(PoolQuery::weights)) continue;
      p[i] = l < latents ? p[i] * scale : -INFINITY;
      if (kind == static_cast<int>(PoolQuery::logits_plus_z)) p[i] += next;
      most = fmaxf(most, p[i]);
    }
    if (kind != static_cast<int>(PoolQuery::weights)) {
      most = warp_greatest(most);
      most = most == -INFINITY ? 0.F : most;
    }
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      if (kind == static_cast<int>(PoolQuery::logits_plus_z)) {
        p[i] = state.total[i] > 0 ? exp2f(p[i] - most) : 0.F;
        part += p[i] * state.total[i];
        continue;
      }
      // A latent that has seen nothing has nothing to give, but the softmax counts it.
      const float by = state.total[i] > 0 ? state.total[i] : 1.F;
      p[i] = (kind == static_cast<int>(PoolQuery::logits) ? exp2f(p[i] - most) : p[i]) / by;
      part += p[i] * by;
    }
  } else {
    const bool elu = kind == static_cast<int>(ProductFeature::elu_plus_one);
    const auto phi = [&](float x) { return !elu ? x : x > 0 ? x + 1 : expf(x); };
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int l = lane + 32 * i;
      decay[i] = by_token;
      e[i] = seen && l < latents ? phi(key[l]) : 0.F;
      p[i] = l < latents ? phi(query[l]) : 0.F;
      state.total[i] += e[i];
      part += p[i] * state.total[i];
    }
  }
  return normalised ? warp_sum(part) : 1.F;
}

/// Whether the family's decays are of tokens, not of latents whose maxima rise.
template <class Family>
constexpr bool decays_by_token = Family::decays && !Family::pools;

/// What a token multiplies the memory by, where decays are of tokens; else 1.
template <class Family, class T>
__device__ inline float decay_of_token(const RecurrentArguments<T>& a, std::int64_t b,
                                       std::int64_t h, std::int64_t t) {
  if constexpr (decays_by_token<Family>) return expf(a.log_decay.at(b, h, t)[0]);
  return 1;
}

/// Grid [heads, value_dim / (scan_warps * scan_columns)]; shared memory of
/// scan_tokens * (2 latents + scan_warps * scan_columns) floats. No segments.
template <class Family, class T, int Own>
__global__ void __launch_bounds__(32 * scan_warps, 1)
    recurrent_scan(const RecurrentArguments<T> a) {
  constexpr int threads = 32 * scan_warps, columns = scan_warps * scan_columns;
  ATTNBENCH_SHARED(float, floats, 128);
  __shared__ float decays[scan_tokens];
  float* const queries = floats;
  float* const keys = queries + scan_tokens * a.latents;
  float* const values = keys + scan_tokens * a.latents;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const std::int64_t head = blockIdx.x, b = head / a.heads, h = head % a.heads;
  const int column = static_cast<int>(blockIdx.y) * columns;
  const int mine = warp * scan_columns;
  const std::uint8_t* const mask = a.mask == nullptr ? nullptr : a.mask + b * a.mask_stride;

  LaneState<Own> state;
  float s[Own][scan_columns] = {};
#pragma unroll
  for (int i = 0; i < Own; ++i) {
    const int l = lane + 32 * i;
    const std::int64_t at = head * a.latents + l;
    const bool carried = a.before.sum != nullptr && l < a.latents;
    state.total[i] = carried && a.before.total != nullptr ? a.before.total[at] : 0.F;
    state.maximum[i] = Family::pools && carried ? a.before.maximum[at] * log2_of_e : -INFINITY;
#pragma unroll
    for (int j = 0; j < scan_columns; ++j) {
      const int d = column + mine + j;
      if (carried && d < a.value_dim) s[i][j] = a.before.sum[at * a.value_dim + d];
    }
  }
  for (int t0 = 0; t0 < a.length; t0 += scan_tokens) {
    const int rows = min(scan_tokens, a.length - t0);
    __syncthreads();
    for (int i = threadIdx.x; i < rows * a.latents; i += threads) {
      const int t = i / a.latents, l = i % a.latents;
      queries[i] = widen_number(a.query.at(b, h, t0 + t)[l]);
      keys[i] = widen_number(a.key.at(b, h, t0 + t)[l]);
    }
    for (int i = threadIdx.x; i < rows * columns; i += threads) {
      const int t = i / columns, d = column + i % columns;
      const bool there = d < a.value_dim && (mask == nullptr || mask[t0 + t] != 0);
      values[i] = there ? widen_number(a.values.at(b, h, t0 + t)[d]) : 0.F;
    }
    if (decays_by_token<Family> && static_cast<int>(threadIdx.x) < rows) {
      decays[threadIdx.x] = decay_of_token<Family>(a, b, h, t0 + static_cast<int>(threadIdx.x));
    }
    __syncthreads();
    for (int t = 0; t < rows; ++t) {
      const bool seen = mask == nullptr || mask[t0 + t] != 0;
      float e[Own], decay[Own], p[Own];
      float whole = take_token<Family, Own>(
          queries + t * a.latents, keys + t * a.latents, seen, a.latents, a.kind, a.normalised,
          a.scale, decays_by_token<Family> ? decays[t] : 1.F, state, e, decay, p);
      float o[scan_columns] = {};
#pragma unroll
      for (int j = 0; j < scan_columns; ++j) {
        const float v = values[t * columns + mine + j];
#pragma unroll
        for (int i = 0; i < Own; ++i) {
          s[i][j] = Family::decays ? decay[i] * s[i][j] + e[i] * v : s[i][j] + e[i] * v;
          o[j] += p[i] * s[i][j];
        }
        o[j] = warp_sum(o[j]);
      }
      if (a.normalised) whole += a.epsilon;
      const float by = whole == 0 ? 0.F : 1 / whole;
#pragma unroll
      for (int j = 0; j < scan_columns; ++j) {
        const int d = column + mine + j;
        if (lane == j && d < a.value_dim) narrow_number(o[j] * by, a.out.at(b, h, t0 + t)[d]);
      }
    }
  }
  if (a.after.sum == nullptr) return;
#pragma unroll
  for (int i = 0; i < Own; ++i) {
    const int l = lane + 32 * i;
    if (l >= a.latents) continue;
    const std::int64_t at = head * a.latents + l;
#pragma unroll
    for (int j = 0; j < scan_columns; ++j) {
      const int d = column + mine + j;
      if (d < a.value_dim) a.after.sum[at * a.value_dim + d] = s[i][j];
    }
    if (blockIdx.y != 0 || warp != 0) continue;
    if (a.tracked && a.after.total != nullptr) a.after.total[at] = state.total[i];
    if (Family::pools) a.after.maximum[at] = state.maximum[i] * ln_of_2;
  }
}

}  // namespace attnbench::kernels::cuda
