// The inner loop of the recurrent families: a memory S [rows, columns] takes in one token after
// another and is read after each,
//   S_t = S_{t-1} + e_t v_t^T,   o_t = p_t S_t,
// for a block of tokens at a time, while a tile of S stays in registers. 4 rows columns operations
// a token, no more, where the products of a chunk spend 2 C (rows + columns) beside them. Forwards
// it is the families' own recurrence; their gradients are the same sum over other operands,
// forwards or backwards in time.
#pragma once

#include <cstdint>

#include "attention/kernels/ahead.hpp"
#include "attention/kernels/panels.hpp"
#include "attention/kernels/simd.hpp"

namespace attnbench::kernels {

/// Rows of the memory are padded to this many; those beyond are 0 and stay so.
constexpr std::int64_t latent_unit = 4;

/// What the memory is multiplied by before the first token: a factor for each row or each column.
enum class Fade { rows, columns };
/// The order in which the tokens of a block are taken in.
enum class Order { forwards, backwards };

/// A block of tokens: e and p [tokens, rows], v and o [tokens, columns] in panels, v and o in
/// panels of as much room. `columns` is in whole vectors, `rows` a multiple of latent_unit. o is
/// written, not added to.
template <class R>
struct ScanBlock {
  std::int64_t tokens, rows, columns;
  Panels<const R> e, p, v;
  Panels<R> o;
  R* state;  ///< [rows, columns]
  std::int64_t state_stride;
  const R* fade;
  Ahead* ahead;            ///< what to fetch meanwhile
  bool continued = false;  ///< o is added to
};

namespace detail {

template <class R, int Bytes, Fade Fades, Order Time, int M, int N, bool First>
ATTNBENCH_INLINE void scan_tile(const ScanBlock<R>& block, std::int64_t l, std::int64_t d) {
  using S = Simd<R, Bytes>;
  typename S::Vector sums[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      const std::int64_t column = d + j * S::lanes;
      const auto before = S::load(block.state + (l + i) * block.state_stride + column);
      if constexpr (Fades == Fade::rows) {
        sums[i][j] = block.fade[l + i] * before;
      } else {
        sums[i][j] = S::load(block.fade + column) * before;
      }
    }
  }
  // Copies: for all the compiler knows a store to o may change what `block` refers to.
  constexpr std::int64_t step = Time == Order::forwards ? panel_columns<R> : -panel_columns<R>;
  const std::int64_t first = Time == Order::forwards ? 0 : block.tokens - 1;
  const R* e = block.e.at(first, l);
  const R* p = block.p.at(first, l);
  const R* v = block.v.at(first, d);
  R* o = block.o.at(first, d);
  std::int64_t beside[N];
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) beside[j] = block.o.at(first, d + j * S::lanes) - o;
  Ahead::Column ahead = block.ahead->next(o);
  for (std::int64_t t = block.tokens; t > 0; --t) {
    fetch(ahead.from);
    ahead.from += static_cast<std::uintptr_t>(ahead.step);
    typename S::Vector value[N];
    typename S::Vector read[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      value[j] = S::load(v + beside[j]);
      read[j] = First ? S::all(0) : S::load(o + beside[j]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        sums[i][j] += e[i] * value[j];
        read[j] += p[i] * sums[i][j];
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) S::store(o + beside[j], read[j]);
    e += step;
    p += step;
    v += step;
    o += step;
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      S::store(block.state + (l + i) * block.state_stride + d + j * S::lanes, sums[i][j]);
    }
  }
}

/// All rows of N vectors of columns, by tiles of as many rows as the registers hold.
template <class R, int Bytes, Fade Fades, Order Time, int N>
ATTNBENCH_INLINE void scan_columns(const ScanBlock<R>& block, std::int64_t d) {
  constexpr int half = static_cast<int>(latent_unit);
  // 16 sums, 2 values and 2 results in 32 registers of 64 bytes; half of that in 16 of the others.
  constexpr int M = Bytes == 64 ? 2 * half : half;
  std::int64_t l = 0;
  if (block.rows >= M && !block.continued) {
    scan_tile<R, Bytes, Fades, Time, M, N, true>(block, 0, d);
    l = M;
  }
  for (; l + M <= block.rows; l += M) scan_tile<R, Bytes, Fades, Time, M, N, false>(block, l, d);
  if constexpr (M != half) {
    if (l == block.rows) return;
    if (l == 0 && !block.continued) {
      scan_tile<R, Bytes, Fades, Time, half, N, true>(block, l, d);
    } else {
      scan_tile<R, Bytes, Fades, Time, half, N, false>(block, l, d);
    }
  }
}

}  // namespace detail

template <class R, int Bytes, Fade Fades, Order Time>
ATTNBENCH_INLINE void scan(const ScanBlock<R>& block) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  std::int64_t d = 0;
  for (; d + 2 * lanes <= block.columns; d += 2 * lanes) {
    detail::scan_columns<R, Bytes, Fades, Time, 2>(block, d);
  }
  if (d < block.columns) detail::scan_columns<R, Bytes, Fades, Time, 1>(block, d);
}

}  // namespace attnbench::kernels
