// The backward pass of the recurrent families on the tensor cores: what its two kernels share. With
// g = dLoss/do, w = P / n, S the state of the tokens before and R that of the tokens after,
//   X = S g,   S += e v^T   from the first token to the last    (recurrent_query_gradients.cuh),
//   Z = R v,   dLoss/dv = R^T e,   R += w g^T   from the last to the first
//                                                               (recurrent_key_gradients.cuh)
// are three causal products, taken by chunks as that of the forward pass (recurrent_chunks.cuh).
// What else gradients need of X and Z (see recurrent_gradient_rows.cuh) is done where these lie, in
// accumulators of 16 latents a warp by 64 tokens.
#pragma once

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/recurrent/chunks_kernel.cuh"
#include "attention/kernels/cuda/recurrent/gradient_rules.cuh"

namespace attnbench::kernels::cuda {

/// What the kernels are given beside RecurrentArguments. Its `borders` are the states of all tokens
/// before each border; `later` those of all tokens behind it: the sum of w g^T, and of Y.
template <class T>
struct ChunkGradients {
  Rows<const T> d_out;
  Rows<T> d_query, d_key, d_values;
  bool d_out_pieces = false, d_query_pieces = false, d_key_pieces = false, d_value_pieces = false;
  /// [heads, length]: 1 / n, or the logarithm to base 2 of n; and what Y needs of all latents.
  float *whole = nullptr, *grad = nullptr;
  RecurrentState starts;  ///< [heads, chunks, latents]: totals and maxima before each chunk
  RecurrentState later;
};

/// Begins to copy a chunk's tokens, from t0 on and before `last`, into a stage of shared memory;
/// which of them are seen.
template <class Layout, int Latents, int Columns, class T>
__device__ inline std::uint64_t load_gradient_chunk(const RecurrentArguments<T>& a,
                                                    const ChunkGradients<T>& gradients,
                                                    const BlockPlace& place, unsigned char* at,
                                                    int t0, int last) {
  constexpr int threads = Layout::threads;
  const int rows = min(chunk_tokens, last - t0);
  const std::uint64_t all = seen_rows(nullptr, rows);
  const std::uint64_t seen =
      a.mask == nullptr ? all : seen_rows(a.mask + place.b * a.mask_stride + t0, rows);
  const auto at_token = [&](const auto& from) { return from.at(place.b, place.h, t0); };
  fetch<Latents, threads>(Tile<Latents>{at + Layout::query}, at_token(a.query), a.query.row_stride,
                          a.latents, a.query_pieces, all);
  fetch<Latents, threads>(Tile<Latents>{at + Layout::key}, at_token(a.key), a.key.row_stride,
                          a.latents, a.key_pieces, seen);
  fetch<Columns, threads>(Tile<Columns>{at + Layout::grads}, at_token(gradients.d_out),
                          gradients.d_out.row_stride, a.value_dim, gradients.d_out_pieces, all);
  if constexpr (Layout::read_values) {
    fetch<Columns, threads>(Tile<Columns>{at + Layout::values}, at_token(a.values),
                            a.values.row_stride, a.value_dim, a.value_pieces, seen);
  }
  return seen;
}

/// Element i of the accumulator of 8 tokens, `half` of 16, in a fragment of the same 16 latents by
/// 16 tokens that is a left operand.
template <class T>
__device__ inline float in_fragment(const Word (&x)[4], int half, int i) {
  const Word pair = x[2 * half + (i >> 1)];
  return (i & 1) != 0 ? Operand<T>::high(pair) : Operand<T>::low(pair);
}

/// Adds to each of 16 tokens the sum of x over those up to it, or from it on: exact but for the
/// rounding of sums in float.
template <class Number, bool Reverse>
__device__ inline void add_tokens(float (&sum)[2][4], const Word (&x)[4]) {
  const int lane = threadIdx.x & 31, g = lane >> 2, c = 2 * (lane & 3);
  const Word ones = pack_pair<Number>(1, 1);
  const Word edge = pack_pair<Number>((Reverse ? c >= g : c <= g) ? 1.F : 0.F,
                                      (Reverse ? c + 1 >= g : c + 1 <= g) ? 1.F : 0.F);
  multiply_add<Number>(sum[0], x, edge, Reverse ? ones : 0);
  multiply_add<Number>(sum[1], x, Reverse ? 0 : ones, edge);
}

/// Writes those of a warp's 16 columns that belong to tokens [begin, end) into a tile.
template <class T, int Columns>
__device__ inline void leave_columns(const Tile<Columns>& tile, const float (&o)[8][4], int column,
                                     int begin, int end) {
  const int lane = threadIdx.x & 31, g = lane >> 2, c = lane & 3;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const int token = 8 * n + g;
    const Word x = transpose_matrix(pack_pair<T>(o[n][0], o[n][1]));
    const Word y = transpose_matrix(pack_pair<T>(o[n][2], o[n][3]));
    if (token < begin || token >= end) continue;
    tile.pair(token, column + 2 * c) = x;
    tile.pair(token, column + 2 * c + 8) = y;
  }
}

/// Calls f(l * value_dim + d, number) for all of a warp's numbers of S whose rows are 16 latents.
template <int Columns, class F>
__device__ inline void each_of_rows(float (&s)[Columns / 8][4], int latents, int value_dim, int row,
                                    F&& f) {
  each_of_state<Columns>(s, value_dim, latents, row, [&](int d, int at, float& x) {
    f((at - d * latents) * value_dim + d, x);
  });
}

/// A past that decays: of S with latents as rows, and with latents as columns.
template <int Columns>
__device__ inline void decay_rows(float (&s)[Columns / 8][4], const float* decay, int row) {
  const float decay0 = decay[row], decay1 = decay[row + 8];
#pragma unroll
  for (int j = 0; j < Columns / 8; ++j) {
    s[j][0] *= decay0;
    s[j][1] *= decay0;
    s[j][2] *= decay1;
    s[j][3] *= decay1;
  }
}
template <int Latents>
__device__ inline void decay_columns(float (&s)[Latents / 8][4], const float* decay) {
#pragma unroll
  for (int j = 0; j < Latents / 8; ++j) {
    const float2 x = *reinterpret_cast<const float2*>(decay + 8 * j + 2 * (threadIdx.x & 3));
    s[j][0] *= x.x;
    s[j][1] *= x.y;
    s[j][2] *= x.x;
    s[j][3] *= x.y;
  }
}

}  // namespace attnbench::kernels::cuda
