// The forward pass of the tiled softmax on one panel of queries and one tile of keys.
//
// Queries lie along the lanes. So keys and values are read in the rows they come in (one key's
// numbers are broadcast, one value row is a vector), greatest scores and sums are vectors of
// queries, and only the queries are ever transposed, once.
#pragma once

#include <cmath>

#include "attention/kernels/cpu/product/next_memory.hpp"
#include "attention/kernels/cpu/softmax/bias.hpp"
#include "attention/kernels/cpu/softmax/tile.hpp"

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
  const NextMemory* next = nullptr;  ///< or null
  std::int64_t first_group = 0;      ///< among those that fetch it
  /// The sums of queries that see no earlier key begin here, whatever they hold; `further` is
  /// fetched meanwhile.
  bool fresh = false;
  MemoryOnTheWay* further = nullptr;
};

/// scores[k, i] for the keys of `range`, which begins at a multiple of 8, in groups of as many, and
/// for the vectors of queries that see any key of the group: the tile has that many rows. They
/// start from zero, or from the diagonals of `bias`, a transposed table.
template <class R, int Bytes, Start start>
ATTNBENCH_INLINE void panel_scores(const SoftmaxSizes& sizes, const QueryPanel<R>& p,
                                   const KeyTile<R>& tile, const R* bias, Range range, bool whole,
                                   R* scores) {
  constexpr int lanes = Simd<R, Bytes>::lanes;
  constexpr int M = has_32_registers<Bytes> ? 8 : 4;
  const auto vectors_that_see = [&](std::int64_t k) ATTNBENCH_INLINE_LAMBDA {
    const Range queries = within(
        {seeing_queries(sizes, tile.s0 + k).begin, seeing_queries(sizes, tile.s0 + k + M - 1).end},
        p.t0, p.rows);
    return Range{queries.begin / lanes, (queries.end + lanes - 1) / lanes};
  };
  for (std::int64_t begin = range.begin; begin < range.end;) {
    // As many groups at once as the same vectors see.
    Range seeing{0, (p.rows + lanes - 1) / lanes};
    std::int64_t end = range.end;
    if (!whole) {
      seeing = vectors_that_see(begin);
      end = begin + M;
      while (end < range.end) {
        const Range further = vectors_that_see(end);
        if (further.begin != seeing.begin || further.end != seeing.end) break;
        end += M;
      }
    }
    in_runs<3>(
        seeing.end,
        [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
          constexpr int N = decltype(vectors)::value;
          const auto take = [&](std::int64_t k, auto keys) ATTNBENCH_INLINE_LAMBDA {
            constexpr int count = decltype(keys)::value;
            for (std::int64_t at = k; tile.next != nullptr && at < k + count; at += row_unit) {
              tile.next->fetch_of(tile.first_group + at / row_unit);
            }
            const R* const diagonals =
                start == Start::diagonal ? bias + p.t0 + sizes.offset - tile.s0 - k + first * lanes
                                         : nullptr;
            detail::multiply_tile<R, Bytes, count, N, start>(
                sizes.head_dim, {tile.keys + k * tile.key_stride, tile.key_stride, 1},
                p.q + first * lanes, panel, scores + k * panel + first * lanes, panel, diagonals);
          };
          std::int64_t k = begin;
          if constexpr (N == 1) {  // 8 sums are too few to hide their own latency
            for (; k + 2 * M <= end; k += 2 * M) take(k, std::integral_constant<int, 2 * M>{});
          }
          for (; k < end; k += M) take(k, std::integral_constant<int, M>{});
        },
        seeing.begin);
    begin = end;
  }
}

/// Numbers of which `lanes` neighbours, that no score is above, hide the first or last lanes.
template <class R, std::int64_t lanes>
struct Bounds {
  R numbers[3 * lanes] = {};
  constexpr Bounds() {
    constexpr R infinity = std::numeric_limits<R>::infinity();
    for (std::int64_t i = 0; i < 3 * lanes; ++i) numbers[i] = i / lanes == 1 ? infinity : -infinity;
  }
};

/// Minus infinity where a query does not see a key, in one vector of queries from t on, `rows` of
/// which there are, and the keys of `range`. By selection, which hides a NaN too: a product with 0
/// would turn infinities into NaN.
template <class R, int Bytes>
ATTNBENCH_INLINE void hide(const SoftmaxSizes& sizes, const std::uint8_t* mask, std::int64_t t,
                           std::int64_t rows, std::int64_t s0, Range range, R* column) {
  using S = Simd<R, Bytes>;
  constexpr std::int64_t lanes = S::lanes;
  static constexpr Bounds<R, lanes> bounds;
  const std::int64_t opposite =
      s0 - sizes.offset - t;  // the lane that sits on the tile's first key
  const auto hide_some = [&](std::int64_t begin, std::int64_t end) ATTNBENCH_INLINE_LAMBDA {
    for (std::int64_t k = begin; k < end; ++k) {
      const std::int64_t first = std::clamp<std::int64_t>(opposite + k - sizes.right, 0, lanes);
      const std::int64_t past = std::clamp<std::int64_t>(opposite + k + sizes.left + 1, 0, lanes);
      const auto late =
          S::min(S::load(column + k * panel), S::load(bounds.numbers + lanes - first));
      S::store(column + k * panel, S::min(late, S::load(bounds.numbers + 2 * lanes - past)));
    }
  };
  // The keys between are seen by all.
  const std::int64_t begin = sizes.first_key(t + rows - 1) - s0;
  const std::int64_t end = sizes.last_key(t) + 1 - s0;
  hide_some(range.begin, std::min(begin, range.end));
  hide_some(std::max({range.begin, begin, end}), range.end);
  for (std::int64_t k = range.begin; mask != nullptr && k < range.end; ++k) {
    if (mask[s0 + k] == 0) {
      S::store(column + k * panel, S::broadcast(-std::numeric_limits<R>::infinity()));
    }
  }
}

/// Scores become weights relative to the greatest score so far, which moves with them; `decay` is
/// what sums made before are worth now. For all keys of `range`; a vector of queries that does not
/// see some of them has no scores there, and gets 0.
template <class R, int Bytes>
ATTNBENCH_INLINE void panel_weights(const SoftmaxSizes& sizes, const std::uint8_t* mask,
                                    const QueryPanel<R>& p, const KeyTile<R>& tile, Range range,
                                    bool whole, R* scores, R* decay) {
  using S = Simd<R, Bytes>;
  constexpr R lowest = -std::numeric_limits<R>::infinity();
  constexpr int unit = 4;  // chains of comparisons that hide each other's latency
  for (std::int64_t i = 0; i < p.rows; i += S::lanes) {
    R* const column = scores + i;
    Range seen = range;
    if (!whole || mask != nullptr) {
      const std::int64_t rows = std::min<std::int64_t>(S::lanes, p.rows - i);
      seen = within(seen_keys(sizes, p.t0 + i, rows), tile.s0, tile.count);
      if (seen.empty()) seen = {range.begin, range.begin};
      hide<R, Bytes>(sizes, mask, p.t0 + i, rows, tile.s0, seen, column);
    }
    const auto before = S::load(p.greatest + i);
    typename S::Vector most[unit] = {before, before, before, before};
    std::int64_t k = seen.begin;
    for (; k + unit <= seen.end; k += unit) {
#pragma GCC unroll 4
      for (int u = 0; u < unit; ++u) {
        most[u] = S::max(most[u], S::load(column + (k + u) * panel));
      }
    }
    for (; k < seen.end; ++k) most[0] = S::max(most[0], S::load(column + k * panel));
    const auto after = S::max(S::max(most[0], most[1]), S::max(most[2], most[3]));
    // A row that has seen no key yet must not compute infinity minus infinity.
    const auto base = after == lowest ? S::broadcast(0) : after;
    typename S::Vector total[2] = {};
    for (k = seen.begin; k + 2 <= seen.end; k += 2) {
#pragma GCC unroll 2
      for (int u = 0; u < 2; ++u) {
        const auto weight = S::exp2(S::load(column + (k + u) * panel) - base);
        S::store(column + (k + u) * panel, weight);
        total[u] += weight;
      }
    }
    for (; k < seen.end; ++k) {
      const auto weight = S::exp2(S::load(column + k * panel) - base);
      S::store(column + k * panel, weight);
      total[0] += weight;
    }
    for (k = range.begin; k < seen.begin; ++k) S::store(column + k * panel, S::broadcast(0));
    for (k = seen.end; k < range.end; ++k) S::store(column + k * panel, S::broadcast(0));
    const auto factor = S::exp2(before - base);
    S::store(decay + i, factor);
    S::store(p.greatest + i, after);
    S::store(p.sum + i, S::load(p.sum + i) * factor + (total[0] + total[1]));
  }
}

/// out = decay * out + weights * values, six queries at a time, against the keys that they see.
template <class R, int Bytes, bool Fresh>
ATTNBENCH_INLINE void panel_values(const SoftmaxSizes& sizes, const QueryPanel<R>& p,
                                   const KeyTile<R>& tile, Range range, bool whole, const R* scores,
                                   const R* decay, std::int64_t value_dim) {
  constexpr int lanes = Simd<R, Bytes>::lanes;
  constexpr int M = 6;
  for (std::int64_t i = 0; i < p.rows; i += M) {
    const std::int64_t rows = std::min<std::int64_t>(M, p.rows - i);
    const Range seen =
        whole ? range : within(seen_keys(sizes, p.t0 + i, rows), tile.s0, tile.count);
    if (seen.empty()) continue;
    const bool begins = Fresh && sizes.first_key(p.t0 + i) >= tile.s0;
    in_runs<has_32_registers<Bytes> ? 4 : 2>(
        value_dim / lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
          constexpr int N = decltype(vectors)::value;
          const Left<R> weights{scores + seen.begin * panel + i, 1, panel};
          const R* const values = tile.values + seen.begin * tile.value_stride + first * lanes;
          R* const out = p.out + i * value_dim + first * lanes;
          if (begins) {
            const std::int64_t keys = seen.end - seen.begin;
            detail::multiply_tile<R, Bytes, M, N, Start::zero>(
                keys, weights, values, tile.value_stride, out, value_dim, nullptr,
                tile.further->next(keys, values));
          } else {
            detail::multiply_tile<R, Bytes, M, N, Start::scaled>(seen.end - seen.begin, weights,
                                                                 values, tile.value_stride, out,
                                                                 value_dim, decay + i);
          }
        });
  }
}

/// The whole of it: adds one tile's keys to one panel's sums. `scores` holds tile.count rows,
/// rounded up to 8, of `panel`; `decay` one row; `bias` a transposed table, or null.
template <class R, int Bytes>
void take_tile(const SoftmaxSizes& sizes, const std::uint8_t* mask, const R* bias,
               const QueryPanel<R>& p, const KeyTile<R>& tile, std::int64_t value_dim, R* scores,
               R* decay) {
  const Range seen = within(seen_keys(sizes, p.t0, p.rows), tile.s0, tile.count);
  if (seen.empty()) return;
  const Range range{seen.begin / row_unit * row_unit, seen.end};
  const bool whole = sizes.first_key(p.t0 + p.rows - 1) <= tile.s0 + range.begin &&
                     sizes.last_key(p.t0) >= tile.s0 + range.end - 1;
  // Apart from each other, for each wants all registers.
  if (bias == nullptr) {
    Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
      panel_scores<R, Bytes, Start::zero>(sizes, p, tile, nullptr, range, whole, scores);
    });
  } else {
    Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
      panel_scores<R, Bytes, Start::diagonal>(sizes, p, tile, bias, range, whole, scores);
    });
  }
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    panel_weights<R, Bytes>(sizes, mask, p, tile, range, whole, scores, decay);
  });
  if (tile.fresh) {
    Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
      panel_values<R, Bytes, true>(sizes, p, tile, range, whole, scores, decay, value_dim);
    });
  } else {
    Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
      panel_values<R, Bytes, false>(sizes, p, tile, range, whole, scores, decay, value_dim);
    });
  }
}

}  // namespace attnbench::kernels
