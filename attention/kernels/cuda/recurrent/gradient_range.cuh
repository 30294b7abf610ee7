// What keeps gradients by chunks within the few exponents of fp16: powers of two, which round
// nothing, found of each chunk. A product of rows a_s . b_t is below
//   columns 2^(exponent of a_s + 1) 2^(exponent of b_t + 1),
// so that times a power of two for each s, of all t that it meets, it is below 2^15 whatever the
// numbers are; what it is added to has the same factor, which is taken back in float. w is stored
// in a unit for each token, and sums over tokens, in float, have that of the chunk taken in last.
#pragma once

#include "attention/kernels/cuda/recurrent/gradients.cuh"

namespace attnbench::kernels::cuda {

/// 2^e, for e of normal numbers; those beyond give the least or the greatest.
__device__ inline float power_of_two(int e) {
  return __uint_as_float(static_cast<unsigned>(min(max(e, -126), 127) + 127) << 23);
}
/// The inverse of a power of two within 2^-126 and 2^126.
__device__ inline float inverse_power(float x) {
  return __uint_as_float((254U << 23) - __float_as_uint(x));
}
/// floor(log2 x) of x >= 0, `least` at least.
__device__ inline int exponent_of(float x, int least) {
  return max(static_cast<int>(__float_as_uint(x) >> 23) - 127, least);
}
constexpr int least_half_exponent = -24;

constexpr int whole_log2(int x) { return x <= 1 ? 0 : 1 + whole_log2(x / 2); }

/// The greatest of each row of a tile, to [chunk_tokens] `to`: of their sizes or, with `sign`, of
/// the numbers themselves.
template <class T, int Columns, int Threads>
__device__ inline void greatest_of_rows(const Tile<Columns>& tile, bool sign, float* to) {
  using N = Operand<T>;
  constexpr int share = Threads / chunk_tokens, pieces = Tile<Columns>::pieces / share;
  static_assert(share >= 1 && share <= 32 && pieces >= 1);
  const int row = static_cast<int>(threadIdx.x) / share;
  const int first = static_cast<int>(threadIdx.x) % share * pieces;
  float most = sign ? -INFINITY : 0.F;
#pragma unroll 2
  for (int i = 0; i < pieces; ++i) {
    const uint4 x = tile.piece(row, first + i);
    const Word words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float low = N::low(words[j]), high = N::high(words[j]);
      most = fmaxf(most, fmaxf(sign ? low : fabsf(low), sign ? high : fabsf(high)));
    }
  }
#pragma unroll
  for (int i = 1; i < share; i *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
  if (threadIdx.x % share == 0) to[row] = most;
}

/// The greatest of f(t) over a chunk's tokens, to every lane. Whole warps.
template <class F>
__device__ inline float greatest_of_tokens(F&& f) {
  const int lane = static_cast<int>(threadIdx.x & 31);
  float most = fmaxf(f(lane), f(lane + 32));
#pragma unroll
  for (int i = 1; i < 32; i *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
  return most;
}

/// The greatest of f over a token and all before it or, `Reverse`, all after it, in a chunk, for
/// the threads of the first two warps: theirs is token threadIdx.x. Whole warps.
template <bool Reverse, class F>
__device__ inline int greatest_along(F&& f) {
  const int lane = static_cast<int>(threadIdx.x & 31);
  int near = f(Reverse ? lane + 32 : lane), far = f(Reverse ? lane : lane + 32);
#pragma unroll
  for (int i = 1; i < 32; i *= 2) {
    const int x = Reverse ? __shfl_down_sync(~0u, near, i) : __shfl_up_sync(~0u, near, i);
    const int y = Reverse ? __shfl_down_sync(~0u, far, i) : __shfl_up_sync(~0u, far, i);
    if (Reverse ? lane + i < 32 : lane >= i) {
      near = max(near, x);
      far = max(far, y);
    }
  }
  far = max(far, __shfl_sync(~0u, near, Reverse ? 0 : 31));
  return (threadIdx.x < 32) == Reverse ? far : near;
}

/// The factor of a row of products of numbers below 2^(exponent + 1) and 2^(others + 1).
template <int Columns>
__device__ inline float row_factor(int exponent, int others) {
  return power_of_two(min(13 - whole_log2(Columns) - others - exponent, 40));
}

/// A warp's columns, one a token, without the factors that their products had, times `unit`.
__device__ inline void take_back(float (&o)[8][4], const float* factors, float unit) {
  const int c = static_cast<int>(threadIdx.x & 3);
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const float2 x = *reinterpret_cast<const float2*>(factors + 8 * n + 2 * c);
    const float by0 = unit * inverse_power(x.x), by1 = unit * inverse_power(x.y);
    o[n][0] *= by0;
    o[n][1] *= by1;
    o[n][2] *= by0;
    o[n][3] *= by1;
  }
}

/// Factors of the rows of G V^T, [chunk_tokens] each; ends with a barrier.
template <class T, int Columns, int Threads>
__device__ inline void scale_grads(const Tile<Columns>& grads, const Tile<Columns>& values,
                                   float* most_grads, float* most_values, float* factors) {
  greatest_of_rows<T, Columns, Threads>(grads, false, most_grads);
  greatest_of_rows<T, Columns, Threads>(values, false, most_values);
  __syncthreads();
  if (threadIdx.x < chunk_tokens) {
    const int others = greatest_along<false>(
        [&](int s) { return exponent_of(most_values[s], least_half_exponent); });
    factors[threadIdx.x] =
        row_factor<Columns>(exponent_of(most_grads[threadIdx.x], least_half_exponent), others);
  }
  __syncthreads();
}

/// What the second kernel scales in a chunk, as exponents: sums with w have one unit for all, that
/// of the greatest w. Those of a token have a unit of its own, since a later token may need nothing
/// but small ones: one whose keys are all hidden has weights of 1 / epsilon.
struct ChunkUnits {
  int sums = 0, grads = 0;
};

/// [chunk_tokens] each, of a chunk in shared memory.
struct ChunkRanges {
  float *grads, *values, *queries, *keys;  ///< the greatest of each token
  float *key_factors, *value_factors;      ///< of the rows of V G^T, and of E w^T
  float* shares;                           ///< of their columns: the sums' unit in a token's own
  static constexpr int floats = 7 * chunk_tokens;

  __device__ explicit ChunkRanges(float* at)
      : grads(at),
        values(at + chunk_tokens),
        queries(at + 2 * chunk_tokens),
        keys(at + 3 * chunk_tokens),
        key_factors(at + 4 * chunk_tokens),
        value_factors(at + 5 * chunk_tokens),
        shares(at + 6 * chunk_tokens) {}
};

/// The first half, before a barrier: what is greatest in each row. `elu`: features grow with their
/// arguments.
template <class T, bool Keys, bool Values, bool Outputs, int Latents, int Columns, int Threads>
__device__ inline void measure_chunk(const Tile<Latents>& query, const Tile<Latents>& key,
                                     const Tile<Columns>& grads, const Tile<Columns>& values,
                                     bool elu, const ChunkRanges& to) {
  greatest_of_rows<T, Latents, Threads>(query, elu, to.queries);
  if constexpr (Keys && Outputs) {
    greatest_of_rows<T, Columns, Threads>(grads, false, to.grads);
    greatest_of_rows<T, Columns, Threads>(values, false, to.values);
  }
  if constexpr (Values) greatest_of_rows<T, Latents, Threads>(key, elu, to.keys);
}

/// The second half, between barriers: units and factors. `by` holds 1 / n and is multiplied by a
/// token's unit, `grad_of` by its share and the grads' unit.
template <class Family, bool Keys, bool Values, bool Outputs, int Latents, int Columns>
__device__ inline ChunkUnits choose_units(const ChunkRanges& ranges, bool elu, float* by,
                                          float* grad_of) {
  constexpr int most_weight = 14;  // w times its unit is below 2^14
  const auto feature = [&](float x) { return elu ? Family::phi(x) : x; };
  const auto own = [&](int t) {
    const int exponent = exponent_of(fabsf(by[t]) * feature(ranges.queries[t]), -126);
    return min(max(most_weight - 1 - exponent, -110), 30);
  };
  ChunkUnits units;
  units.sums = -static_cast<int>(greatest_of_tokens([&](int t) { return -own(t); }));
  const auto share = [&](int t) { return units.sums - own(t); };
  if constexpr (Keys) {
    const float grad =
        greatest_of_tokens([&](int t) { return fabsf(grad_of[t]) * power_of_two(share(t)); });
    units.grads = min(max(-1 - exponent_of(grad, -126), -100), 100);
  }
  float next_by = 0, next_grad = 0;
  if (threadIdx.x < chunk_tokens) {
    const int t = static_cast<int>(threadIdx.x);
    next_by = by[t] * power_of_two(own(t));
    next_grad = grad_of[t] * power_of_two(share(t)) * power_of_two(units.grads);
    ranges.shares[t] = power_of_two(share(t));
    if constexpr (Keys && Outputs) {
      const int others = greatest_along<true>(
          [&](int u) { return exponent_of(ranges.grads[u], least_half_exponent) + share(u); });
      ranges.key_factors[t] =
          row_factor<Columns>(exponent_of(ranges.values[t], least_half_exponent), others);
    }
    if constexpr (Values) {
      const int others = greatest_along<true>([&](int u) { return most_weight - 1 + share(u); });
      ranges.value_factors[t] =
          row_factor<Latents>(exponent_of(feature(ranges.keys[t]), least_half_exponent), others);
    }
  }
  __syncthreads();  // all have read `by` and `grad_of`
  if (threadIdx.x < chunk_tokens) {
    by[threadIdx.x] = next_by;
    grad_of[threadIdx.x] = next_grad;
  }
  __syncthreads();
  return units;
}

/// A left operand of 16 rows by a chunk's tokens, each token's times its number of `shares`.
template <class Number>
__device__ inline void scale_tokens(Word (&x)[4][4], const float* shares) {
  using N = Operand<Number>;
  const int c = static_cast<int>(threadIdx.x & 3);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 by = *reinterpret_cast<const float2*>(shares + 16 * k + 8 * (i >> 1) + 2 * c);
      x[k][i] = pack_pair<Number>(by.x * N::low(x[k][i]), by.y * N::high(x[k][i]));
    }
  }
}

}  // namespace attnbench::kernels::cuda
