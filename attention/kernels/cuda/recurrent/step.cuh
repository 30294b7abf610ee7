// One token from a carried state: the memory is read and written once, and nothing else counts. A
// block takes one head.
#pragma once

#include "attention/kernels/cuda/recurrent/scan.cuh"

namespace attnbench::kernels::cuda {

constexpr int step_threads = 256;

/// `Vector` columns of the values a thread: 4 where value_dim is a multiple of it, at most
/// step_threads threads a row. Shared memory of 3 latents + step_threads * Vector floats.
template <class Family, class T, int Own, int Vector>
__global__ void __launch_bounds__(step_threads) recurrent_step(const RecurrentArguments<T> a) {
  ATTNBENCH_SHARED(float, floats, 128);
  float* const e = floats;
  float* const decay = e + a.latents;
  float* const p = decay + a.latents;
  float* const partial = p + a.latents;  // [rows, value_dim]
  __shared__ float whole;
  const int lane = threadIdx.x & 31;
  const std::int64_t head = blockIdx.x, b = head / a.heads, h = head % a.heads;
  const bool seen = a.mask == nullptr || a.mask[b * a.mask_stride] != 0;
  const int across = a.value_dim / Vector, rows = step_threads / across;
  const int row = static_cast<int>(threadIdx.x) / across;
  const int d = static_cast<int>(threadIdx.x) % across * Vector;
  const bool works = row < rows;
  float v[Vector] = {}, o[Vector] = {};
#pragma unroll
  for (int j = 0; j < Vector; ++j) {
    v[j] = works && seen ? widen_number(a.values.at(b, h, 0)[d + j]) : 0.F;
  }
  if (threadIdx.x < 32) {
    LaneState<Own> state;
    float keys[Own], own_decay[Own], own_p[Own];
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int l = lane + 32 * i;
      const std::int64_t at = head * a.latents + l;
      const bool there = l < a.latents;
      state.total[i] = there && a.before.total != nullptr ? a.before.total[at] : 0.F;
      state.maximum[i] = Family::pools && there ? a.before.maximum[at] * log2_of_e : -INFINITY;
      if (!there) continue;
      p[l] = widen_number(a.query.at(b, h, 0)[l]);
      e[l] = widen_number(a.key.at(b, h, 0)[l]);
    }
    const float sum = take_token<Family, Own>(p, e, seen, a.latents, a.kind, a.normalised, a.scale,
                                              1.F, state, keys, own_decay, own_p);
    const float by_token =
        decay_of_token<Family>(a, b, h, 0);  // behind: it holds no register before
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int l = lane + 32 * i;
      const std::int64_t at = head * a.latents + l;
      if (l >= a.latents) continue;
      e[l] = keys[i];
      decay[l] = decays_by_token<Family> ? by_token : own_decay[i];
      p[l] = own_p[i];
      if (a.tracked && a.after.total != nullptr) a.after.total[at] = state.total[i];
      if (Family::pools) a.after.maximum[at] = state.maximum[i] * ln_of_2;
    }
    if (lane == 0) whole = sum;
  }
  __syncthreads();
  float* const sum = a.after.sum + head * a.latents * a.value_dim + d;
  constexpr int ahead = 4;  // loads under way at once
  for (int l0 = row; works && l0 < a.latents; l0 += ahead * rows) {
    float s[ahead][Vector];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int l = l0 + i * rows;
      if (l >= a.latents) continue;
      const float* const from = sum + static_cast<std::int64_t>(l) * a.value_dim;
      if constexpr (Vector == 4) {
        const float4 x = *reinterpret_cast<const float4*>(from);
        s[i][0] = x.x, s[i][1] = x.y, s[i][2] = x.z, s[i][3] = x.w;
      } else {
        s[i][0] = from[0];
      }
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int l = l0 + i * rows;
      if (l >= a.latents) continue;
      float* const to = sum + static_cast<std::int64_t>(l) * a.value_dim;
#pragma unroll
      for (int j = 0; j < Vector; ++j) {
        s[i][j] = decay[l] * s[i][j] + e[l] * v[j];
        o[j] += p[l] * s[i][j];
      }
      if constexpr (Vector == 4) {
        *reinterpret_cast<float4*>(to) = make_float4(s[i][0], s[i][1], s[i][2], s[i][3]);
      } else {
        to[0] = s[i][0];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < Vector; ++j) {
    if (works) partial[row * a.value_dim + d + j] = o[j];
  }
  __syncthreads();
  float by = whole + (a.normalised ? a.epsilon : 0.F);
  by = by == 0 ? 0.F : 1 / by;
  for (int i = threadIdx.x; i < a.value_dim; i += step_threads) {
    float x = 0;
    for (int r = 0; r < rows; ++r) x += partial[r * a.value_dim + i];
    narrow_number(x * by, a.out.at(b, h, 0)[i]);
  }
}

}  // namespace attnbench::kernels::cuda
