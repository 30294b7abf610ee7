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
#include "attention/kernels/cuda/recurrent_chunks_kernel.cuh"

namespace attnbench::kernels::cuda {

/// What the kernels are given beside RecurrentArguments. Its `borders` are the states of all tokens
/// before each border; `later` those of all tokens behind it: the sum of w g^T, and of Y.
template <class T>
struct ChunkGradients {
  Rows<const T> d_out;
  Rows<T> d_query, d_key, d_values;
  bool d_out_pieces = false, d_query_pieces = false, d_key_pieces = false, d_value_pieces = false;
  /// [heads, length]: 1 / n, or the logarithm to base 2 of n; and what Y needs of all latents.
  float *whole = nullptr, *slope = nullptr;
  RecurrentState starts;  ///< [heads, chunks, latents]: totals and maxima before each chunk
  RecurrentState later;
};

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

/// What a family's gradients are, element by element.
template <class Family>
struct GradientRules;

template <>
struct GradientRules<ProductFamily> {
  /// Sums over latents that decide n and the mean slope. X stays in `x`; returns what `d_query`
  /// is to be given again. `sum` is that of the keys' weights.
  template <class T>
  __device__ static float look(const RecurrentArguments<T>& a, float& x, float sum, float query,
                               float, float, float& whole, float& dot) {
    const bool elu = a.kind == static_cast<int>(ProductFeature::elu_plus_one);
    const float p = elu ? ProductFamily::phi(query) : query;
    whole += p * sum;
    dot += p * x;
    return sum;
  }
  /// From these sums: the factor and slope that `d_query` takes, and what to keep of a token.
  template <class T>
  __device__ static float2 row(const RecurrentArguments<T>& a, float whole, float dot, float,
                               float2& kept) {
    whole += a.epsilon;
    const float by = !a.normalised ? 1.F : whole == 0 ? 0.F : 1 / whole;
    const float mean = a.normalised ? -dot * by : 0.F;
    kept = make_float2(by, mean);
    return make_float2(by, mean * by);
  }
  template <class T>
  __device__ static bool keeps_rest(const RecurrentArguments<T>&) {
    return false;
  }
  template <class T>
  __device__ static float d_query(const RecurrentArguments<T>& a, float x, float sum, float query,
                                  float2 row) {
    return (x * row.x + row.y * sum) * slope(a, query);
  }
  /// What dLoss/de has of a token beside Z, over its weight: Y.
  template <class T>
  __device__ static float mean(const RecurrentArguments<T>&, float, float, float, float slope) {
    return slope;
  }
  template <class T>
  __device__ static float d_key(const RecurrentArguments<T>& a, float z, float later, float key,
                                float) {
    return (z + later) * slope(a, key);
  }

 private:
  template <class T>
  __device__ static float slope(const RecurrentArguments<T>& a, float x) {
    const bool elu = a.kind == static_cast<int>(ProductFeature::elu_plus_one);
    return !elu || x > 0 ? 1.F : exp2_fast(x * log2_of_e);
  }
};

template <>
struct GradientRules<PoolFamily> {
  template <class T>
  __device__ static float look(const RecurrentArguments<T>& a, float& x, float sum, float query,
                               float top, float maximum, float& whole, float& dot) {
    if (!(sum > 0)) {
      x = 0;
      return 0;
    }
    x = __fdividef(x, sum);
    float p = query;
    if (a.kind == static_cast<int>(PoolQuery::logits)) {
      p = exp2_fast(query * a.scale - top);
    } else if (a.kind == static_cast<int>(PoolQuery::logits_and_normaliser)) {
      p = exp2_fast(query * a.scale + maximum - top) * sum;
    }
    whole += p;
    dot += p * x;
    return p;
  }
  template <class T>
  __device__ static float2 row(const RecurrentArguments<T>& a, float whole, float dot, float top,
                               float2& kept) {
    if (a.kind == static_cast<int>(PoolQuery::weights) || !(whole > 0)) {
      kept = make_float2(0, 0);
      return make_float2(0, 0);
    }
    const float by = 1 / whole;
    kept = make_float2(top + __log2f(whole), dot * by);
    return make_float2(by, dot * by);
  }
  /// Whether what rounding takes from dLoss/dquery is left in the place of dLoss/dkey until that is
  /// written. Where queries are weights dLoss/dquery is all there is of dLoss/dp, and where one
  /// token outweighs all others, Z and Y all but cancel.
  template <class T>
  __device__ static bool keeps_rest(const RecurrentArguments<T>& a) {
    return a.kind == static_cast<int>(PoolQuery::weights);
  }
  template <class T>
  __device__ static float d_query(const RecurrentArguments<T>& a, float x, float p, float,
                                  float2 row) {
    if (a.kind == static_cast<int>(PoolQuery::weights)) return x;
    return a.scale * ln_of_2 * (p * row.x) * (x - row.y);
  }
  /// dLoss/dp comes back of dLoss/dquery = p (dLoss/dp - slope): no more than that is kept.
  template <class T>
  __device__ static float mean(const RecurrentArguments<T>& a, float query, float d_query,
                               float whole, float slope) {
    const float scale = a.scale * ln_of_2;
    if (a.kind == static_cast<int>(PoolQuery::weights)) return -scale * d_query;
    if (a.kind != static_cast<int>(PoolQuery::logits)) return -scale * slope;
    // Where p is nothing, so is d_query.
    const float over = exp2_fast(fminf(whole - query * a.scale, 126));
    return -(d_query * over + scale * slope);
  }
  template <class T>
  __device__ static float d_key(const RecurrentArguments<T>& a, float z, float later, float key,
                                float maximum) {
    const float base = maximum == -INFINITY ? 0.F : maximum;
    return exp2_fast(key * a.scale - base) * (a.scale * ln_of_2 * z + later);
  }
};

}  // namespace attnbench::kernels::cuda
