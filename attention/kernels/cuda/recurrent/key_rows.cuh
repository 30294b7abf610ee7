// dLoss/dkey from Z, a warp's 16 latents of a chunk: see recurrent_key_gradients.cuh.
#pragma once

#include "attention/kernels/cuda/recurrent/gradient_range.cuh"

namespace attnbench::kernels::cuda {

/// dLoss/dquery of a chunk as it was stored, and what rounding took from it; whether they are
/// needed.
template <int Latents>
struct QueryGradients {
  Tile<Latents> stored, rest;
  bool needed, rounded;
};

/// Y of 16 tokens in two halves of `T`, twice as many digits as one has. `weights` are w,
/// with the grads in units where `T` has few exponents.
template <class Family, class T, int Latents>
__device__ inline void weigh_grads(const RecurrentArguments<T>& a, const ChunkView<Latents>& view,
                                   const float* grad_of, const QueryGradients<Latents>& d_query,
                                   const Word (&weights)[4], int first, int column, Word (&high)[4],
                                   Word (&low)[4]) {
  Word q[4] = {}, d[4] = {}, rest[4] = {};
  if constexpr (Family::decays) Fragments<Latents>(view.query).left_transposed(q, first, column);
  if (d_query.needed) Fragments<Latents>(d_query.stored).left_transposed(d, first, column);
  if (d_query.rounded) Fragments<Latents>(d_query.rest).left_transposed(rest, first, column);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int token = first + 8 * h + 2 * static_cast<int>(threadIdx.x & 3);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float y[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int n = 2 * r + i;
        y[i] = in_fragment<T>(weights, h, n) *
               GradientRules<Family>::mean(a, in_fragment<T>(q, h, n),
                                           in_fragment<T>(d, h, n) + in_fragment<T>(rest, h, n),
                                           view.top[token + i], grad_of[token + i]);
      }
      const Word rounded = pack_pair<T>(y[0], y[1]);
      high[2 * h + r] = rounded;
      low[2 * h + r] =
          pack_pair<T>(y[0] - Operand<T>::low(rounded), y[1] - Operand<T>::high(rounded));
    }
  }
}

/// Adds Y to `later`, its sums over all later tokens, for the thread's two latents; with outputs,
/// `o` is Z and becomes dLoss/dkey. `weights`, w's fragments, are taken anew where they were
/// scaled.
template <class Family, class T, int Latents, bool Outputs>
__device__ inline void finish_keys(const RecurrentArguments<T>& a, const ChunkView<Latents>& view,
                                   const float* grad_of, const QueryGradients<Latents>& d_query,
                                   const ChunkUnits& units, const Word (&weights)[4][4], int column,
                                   float (&o)[8][4], float (&later)[2]) {
  const int lane = threadIdx.x & 31, c = lane & 3, mine = column + (lane >> 2);
  const float maximum0 = view.maximum[mine], maximum1 = view.maximum[mine + 8];
#pragma unroll
  for (int j = 3; j >= 0; --j) {
    constexpr bool narrow = Operand<T>::narrow;
    Word high[4], low[4], k[4], w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = weights[j][i];
    if constexpr (narrow) Fragments<Latents>(view.weights).left_transposed(w, 16 * j, column);
    weigh_grads<Family, T>(a, view, grad_of, d_query, w, 16 * j, column, high, low);
    Fragments<Latents>(view.key).left_transposed(k, 16 * j, column);
    const float begin0 = narrow ? 0.F : later[0], begin1 = narrow ? 0.F : later[1];
    float sum[2][4] = {{begin0, begin0, begin1, begin1}, {begin0, begin0, begin1, begin1}};
    add_tokens<T, true>(sum, high);
    add_tokens<T, true>(sum, low);
    if constexpr (narrow) {
      const float unit = power_of_two(-units.sums - units.grads);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[h][i] = fmaf(sum[h][i], unit, later[i / 2]);
      }
    }
    later[0] = __shfl_sync(~0u, sum[0][0], lane & ~3);
    later[1] = __shfl_sync(~0u, sum[0][2], lane & ~3);
    if constexpr (Outputs) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const bool seen = has(view.seen, 16 * j + 8 * h + 2 * c + (i & 1));
          const float d_key = GradientRules<Family>::d_key(
              a, o[2 * j + h][i], sum[h][i], in_fragment<T>(k, h, i), i < 2 ? maximum0 : maximum1);
          o[2 * j + h][i] = seen ? d_key : 0.F;
        }
      }
    }
  }
  if constexpr (Family::decays) {
    later[0] *= view.decay[mine];
    later[1] *= view.decay[mine + 8];
  }
}

}  // namespace attnbench::kernels::cuda
