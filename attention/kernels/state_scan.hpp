// The inner loop of the recurrent families: a memory S [L, D] takes in one token after another and
// is read after each,
//   S_t = S_{t-1} + e_t v_t^T,   o_t += p_t S_t,
// for a block of tokens at a time, while a tile of S stays in registers. 4 L D operations a token,
// no more, where the products of a chunk spend 2 C (L + D) beside them.
#pragma once

#include <cstdint>

#include "attention/kernels/simd.hpp"

namespace attnbench::kernels {

/// Rows of the memory are padded to this many; those beyond are 0 and stay so.
constexpr std::int64_t latent_unit = 4;

/// A block of tokens: e and p [tokens, latents], v and o [tokens, width], S [latents, width], rows
/// apart by the strides. `width` is in whole vectors, `latents` a multiple of latent_unit. S is
/// first multiplied by `fade` [latents], row by row; o is written, not added to.
template <class R>
struct ScanBlock {
  std::int64_t tokens, latents, width;
  const R *e, *p;
  std::int64_t latent_stride;
  const R* v;
  R* o;
  std::int64_t width_stride;
  R* state;
  std::int64_t state_stride;
  const R* fade;
};

namespace detail {

template <class R, int Bytes, int N, bool First>
ATTNBENCH_INLINE void scan_tile(const ScanBlock<R>& block, std::int64_t l, std::int64_t d) {
  using S = Simd<R, Bytes>;
  constexpr int M = static_cast<int>(latent_unit);
  typename S::Vector sums[M][N];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      sums[i][j] = block.fade[l + i] *
                   S::load(block.state + (l + i) * block.state_stride + d + j * S::lanes);
    }
  }
  // Copies: for all the compiler knows a store to o may change what `block` refers to.
  const std::int64_t tokens = block.tokens;
  const std::int64_t latent_stride = block.latent_stride;
  const std::int64_t width_stride = block.width_stride;
  const R* e = block.e + l;
  const R* p = block.p + l;
  const R* v = block.v + d;
  R* o = block.o + d;
  for (std::int64_t t = 0; t < tokens; ++t) {
    typename S::Vector value[N];
    typename S::Vector read[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      value[j] = S::load(v + j * S::lanes);
      read[j] = First ? S::all(0) : S::load(o + j * S::lanes);
    }
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        sums[i][j] += e[i] * value[j];
        read[j] += p[i] * sums[i][j];
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) S::store(o + j * S::lanes, read[j]);
    e += latent_stride;
    p += latent_stride;
    v += width_stride;
    o += width_stride;
  }
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      S::store(block.state + (l + i) * block.state_stride + d + j * S::lanes, sums[i][j]);
    }
  }
}

template <class R, int Bytes, int N>
ATTNBENCH_INLINE void scan_columns(const ScanBlock<R>& block, std::int64_t d) {
  scan_tile<R, Bytes, N, true>(block, 0, d);
  for (std::int64_t l = latent_unit; l < block.latents; l += latent_unit) {
    scan_tile<R, Bytes, N, false>(block, l, d);
  }
}

}  // namespace detail

template <class R, int Bytes>
ATTNBENCH_INLINE void scan(const ScanBlock<R>& block) {
  // 16 sums, 4 values and 4 results in 32 registers of 64 bytes; half of that in 16 of the others.
  constexpr int N = Bytes == 64 ? 4 : 2;
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  std::int64_t d = 0;
  for (; d + N * lanes <= block.width; d += N * lanes) {
    detail::scan_columns<R, Bytes, N>(block, d);
  }
  for (; d < block.width; d += lanes) detail::scan_columns<R, Bytes, 1>(block, d);
}

}  // namespace attnbench::kernels
