// The forward pass of the tiled softmax on one panel of queries and one tile of keys.
//
// Queries lie along the lanes. So keys and values are read in the rows they come in (one key's
// numbers are broadcast, one value row is a vector), greatest scores and sums are vectors of
// queries, and only the queries are ever transposed, once.
#pragma once

#include <cmath>

#include "attention/kernels/softmax_bias.hpp"
#include "attention/kernels/softmax_tile.hpp"

namespace attnbench::kernels {

/// One panel of queries as it goes through the keys.
template <class R>
struct QueryPanel {
  std::int64_t t0, rows;  ///< the first query, and how many there are, up to `panel`
  const R* q;             ///< [head_dim, panel]: times scale and log2(e)
  R* out;                 ///< [panel, value_dim, padded]: sums of weighted values
  R *greatest, *sum;      ///< [panel]: in base 2
};

/// One tile of keys and values, in rows.
template <class R>
struct KeyTile {
  std::int64_t s0, count;
  const R* keys;
  const R* values;
  std::int64_t key_stride, value_stride;
};

/// scores[k, i] for keys in `range`, which begins at a multiple of 8, and i < panel. Computes whole
/// groups of 8 keys: the tile has that many rows.
template <class R, int Bytes>
ATTNBENCH_INLINE void panel_scores(const QueryPanel<R>& p, const KeyTile<R>& tile,
                                   std::int64_t head_dim, Range range, R* scores) {
  constexpr int lanes = Simd<R, Bytes>::lanes;
  constexpr int M = Bytes == 64 ? 8 : 4;
  in_runs<3>((p.rows + lanes - 1) / lanes,
             [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
               constexpr int N = decltype(vectors)::value;
               for (std::int64_t k = range.begin; k < range.end; k += M) {
                 detail::multiply_tile<R, Bytes, M, N, Start::zero>(
                     head_dim, {tile.keys + k * tile.key_stride, tile.key_stride, 1},
                     p.q + first * lanes, panel, scores + k * panel + first * lanes, panel);
               }
             });
}

/// Minus infinity where a query does not see a key. By selection: a product with 0 would turn
/// infinities into NaN.
template <class R>
ATTNBENCH_INLINE void hide(const SoftmaxSizes& sizes, const std::uint8_t* mask, std::int64_t t0,
                           std::int64_t rows, std::int64_t s0, Range range, R* scores) {
  constexpr R hidden = -std::numeric_limits<R>::infinity();
  const bool inside = sizes.first_key(t0 + rows - 1) <= s0 + range.begin &&
                      sizes.last_key(t0) >= s0 + range.end - 1;
  if (inside && mask == nullptr) return;
  for (std::int64_t k = range.begin; k < range.end; ++k) {
    R* const row = scores + k * panel;
    const std::int64_t key = s0 + k;
    if (key >= sizes.key_length || (mask != nullptr && mask[key] == 0)) {
      std::fill_n(row, panel, hidden);
      continue;
    }
    if (inside) continue;
    const Range seen = within(seeing_queries(sizes, key), t0, panel);
    std::fill_n(row, seen.begin, hidden);
    std::fill(row + std::max(seen.begin, seen.end), row + panel, hidden);
  }
}

/// Scores become weights relative to the greatest score so far, which moves with them; `fade` is
/// what sums made before are worth now.
template <class R, int Bytes>
ATTNBENCH_INLINE void panel_weights(const QueryPanel<R>& p, Range range, R* scores, R* fade) {
  using S = Simd<R, Bytes>;
  constexpr R lowest = -std::numeric_limits<R>::infinity();
  constexpr int unit = 4;  // chains of comparisons that hide each other's latency
  for (std::int64_t i = 0; i < rounded(p.rows, S::lanes); i += S::lanes) {
    R* const column = scores + i;
    const auto before = S::load(p.greatest + i);
    typename S::Vector most[unit] = {before, before, before, before};
    std::int64_t k = range.begin;
    for (; k + unit <= range.end; k += unit) {
#pragma GCC unroll 4
      for (int u = 0; u < unit; ++u) {
        most[u] = S::greater(most[u], S::load(column + (k + u) * panel));
      }
    }
    for (; k < range.end; ++k) most[0] = S::greater(most[0], S::load(column + k * panel));
    const auto after = S::greater(S::greater(most[0], most[1]), S::greater(most[2], most[3]));
    // A row that has seen no key yet must not compute infinity minus infinity.
    const auto base = after == lowest ? S::all(0) : after;
    typename S::Vector total[2] = {};
    for (k = range.begin; k + 2 <= range.end; k += 2) {
#pragma GCC unroll 2
      for (int u = 0; u < 2; ++u) {
        const auto weight = S::exp2(S::load(column + (k + u) * panel) - base);
        S::store(column + (k + u) * panel, weight);
        total[u] += weight;
      }
    }
    for (; k < range.end; ++k) {
      const auto weight = S::exp2(S::load(column + k * panel) - base);
      S::store(column + k * panel, weight);
      total[0] += weight;
    }
    const auto factor = S::exp2(before - base);
    S::store(fade + i, factor);
    S::store(p.greatest + i, after);
    S::store(p.sum + i, S::load(p.sum + i) * factor + (total[0] + total[1]));
  }
}

/// out = fade * out + weights * values, six queries at a time, against the keys that they see.
template <class R, int Bytes>
ATTNBENCH_INLINE void panel_values(const SoftmaxSizes& sizes, const QueryPanel<R>& p,
                                   const KeyTile<R>& tile, Range range, const R* scores,
                                   const R* fade, std::int64_t value_dim) {
  constexpr int lanes = Simd<R, Bytes>::lanes;
  constexpr int M = 6;
  for (std::int64_t i = 0; i < p.rows; i += M) {
    const std::int64_t rows = std::min<std::int64_t>(M, p.rows - i);
    Range seen = within(seen_keys(sizes, p.t0 + i, rows), tile.s0, tile.count);
    seen = {std::max(seen.begin, range.begin), std::min(seen.end, range.end)};
    if (seen.empty()) continue;
    in_runs<Bytes == 64 ? 4 : 2>(
        value_dim / lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
          constexpr int N = decltype(vectors)::value;
          detail::multiply_tile<R, Bytes, M, N, Start::scaled>(
              seen.end - seen.begin, {scores + seen.begin * panel + i, 1, panel},
              tile.values + seen.begin * tile.value_stride + first * lanes, tile.value_stride,
              p.out + i * value_dim + first * lanes, value_dim, fade + i);
        });
  }
}

/// The whole of it: adds one tile's keys to one panel's sums. `scores` holds tile.count rows,
/// rounded up to 8, of `panel`; `fade` one row; `bias` a turned table, or null.
template <class R, int Bytes>
void take_tile(const SoftmaxSizes& sizes, const std::uint8_t* mask, const R* bias,
               const QueryPanel<R>& p, const KeyTile<R>& tile, std::int64_t value_dim, R* scores,
               R* fade) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    const Range seen = within(seen_keys(sizes, p.t0, p.rows), tile.s0, tile.count);
    if (seen.empty()) return;
    const Range range{seen.begin / row_unit * row_unit, seen.end};
    panel_scores<R, Bytes>(p, tile, sizes.head_dim, range, scores);
    for (std::int64_t k = range.begin; bias != nullptr && k < range.end; ++k) {
      const R* const from = bias + p.t0 + sizes.offset - tile.s0 - k;
      add_row<R, Bytes>(from, rounded(p.rows, Simd<R, Bytes>::lanes), scores + k * panel);
    }
    hide(sizes, mask, p.t0, p.rows, tile.s0, range, scores);
    panel_weights<R, Bytes>(p, range, scores, fade);
    panel_values<R, Bytes>(sizes, p, tile, range, scores, fade, value_dim);
  });
}

}  // namespace attnbench::kernels
