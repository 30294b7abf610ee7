// What the gradients of the whole pool on the tensor cores are given, and what their kernels share:
// a matrix of a head, M or dM, in 16 bits, 64 latents of it at a time beside as many logits of 64
// tokens. See whole_pool_exact.cuh for the formulas.
#pragma once

#include "attention/kernels/cuda/pool/merge.cuh"
#include "attention/kernels/cuda/recurrent/chunks_kernel.cuh"

namespace attnbench::kernels::cuda {

constexpr int grad_latents = 64;   // taken in at once
constexpr int grad_threads = 128;  // four warps, of 16 tokens or latents each

/// Of the queries and their results' gradients, or of the scores and the values.
template <class T>
struct PoolGrads {
  Rows<const T> logits, rows;  ///< [heads, length, latents], [heads, length, value_dim]
  Rows<T> d_logits, d_rows;    ///< the latter of values alone
  const std::uint8_t* mask = nullptr;
  std::int64_t mask_stride = 0;
  int heads = 1, length = 0, latents = 0, value_dim = 0;
  int segments = 1, segment_tokens = 0;  ///< of pool_grad_sums
  bool given = false;                    ///< whether queries are the weights
  float scale = 1, grad_scale = 1;       ///< of logits, log2(e) included, and without
  /// [heads, padded, Dim]: M or dM, each row over its power of two, `units` [heads, padded].
  const T* matrix = nullptr;
  const float* units = nullptr;
  const float *shift = nullptr, *gain = nullptr;  ///< [heads, latents]; null adds nothing
  const float* less = nullptr;                    ///< [heads, latents]: u
  float *top = nullptr, *factor = nullptr;        ///< [heads, length], of queries
  /// [heads, tiles of 64 queries, latents]: sums of p (X - g.y). Null where they are not needed.
  float* rest = nullptr;
  RecurrentState to;  ///< as PoolMerge wants them
  bool logit_pieces = false, row_pieces = false, d_logit_pieces = false, d_row_pieces = false;

  constexpr int padded() const {
    return (latents + grad_latents - 1) / grad_latents * grad_latents;
  }
};

/// A head's matrix in 16 bits: each row over a power of two that brings its greatest number to 1 or
/// more and below 2, so that fp16 holds it whatever it is.
template <class T>
struct RoundedRows {
  const float* from = nullptr;  ///< [heads, latents, value_dim]
  T* to = nullptr;              ///< [heads, padded, width], zeros beyond
  float* units = nullptr;       ///< [heads, padded]
  /// To [heads, latents] `dots`: the rows as they were rounded times those of `dotted`, and less
  /// `rest` where there is one. Null: nothing.
  const float *dotted = nullptr, *rest = nullptr;
  float* dots = nullptr;
  int latents = 0, value_dim = 0, padded = 0, width = 0;
};

/// A warp a row. Grid [heads, padded / 8], 256 threads.
template <class T>
__global__ void __launch_bounds__(256) round_rows(const RoundedRows<T> a) {
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int l = static_cast<int>(blockIdx.y) * 8 + static_cast<int>(threadIdx.x >> 5);
  const std::int64_t head = blockIdx.x, row = head * a.latents + l, to = head * a.padded + l;
  const auto number = [&](int d) {
    return l < a.latents && d < a.value_dim ? a.from[row * a.value_dim + d] : 0.F;
  };
  float most = 0;
  for (int d = lane; d < a.value_dim; d += 32) most = fmaxf(most, fabsf(number(d)));
  most = warp_greatest(most);
  // Exponents that have an inverse; what is not finite stays so.
  const unsigned exponent = min(max(__float_as_uint(most) >> 23, 1U), 253U);
  const float unit = __uint_as_float(exponent << 23);
  const float by = __uint_as_float((254U - exponent) << 23);
  float dot = 0;
  for (int d = lane; d < a.width; d += 32) {
    T& rounded = a.to[to * a.width + d];
    narrow_number(by * number(d), rounded);
    if (a.dotted != nullptr && l < a.latents && d < a.value_dim) {
      dot += widen_number(rounded) * a.dotted[row * a.value_dim + d];
    }
  }
  if (a.dotted != nullptr) dot = warp_sum(dot);
  if (lane != 0) return;
  a.units[to] = unit;
  if (a.dotted != nullptr && l < a.latents) {
    a.dots[row] = unit * dot - (a.rest == nullptr ? 0.F : a.rest[row]);
  }
}

/// What is added to the logits of 64 latents, -infinity where there is none.
template <class T>
__device__ inline float added(const PoolGrads<T>& a, int head, int l) {
  if (l >= a.latents) return -INFINITY;
  return a.shift == nullptr ? 0.F : a.shift[std::int64_t{head} * a.latents + l];
}

}  // namespace attnbench::kernels::cuda
