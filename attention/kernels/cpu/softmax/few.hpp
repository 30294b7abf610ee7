// The forward pass of the tiled softmax for so few queries that they fill no vector, as when one
// token is decoded: here the numbers of one key lie along the lanes.
#pragma once

#include <cmath>

#include "attention/kernels/cpu/simd/joined_rows.hpp"
#include "attention/kernels/cpu/softmax/forward.hpp"

namespace attnbench::kernels {

/// scores[i, k] of queries and keys in rows of whole vectors. Computes whole vectors of keys: the
/// tile has that many rows.
template <class R, int Bytes>
ATTNBENCH_INLINE void few_scores(const QueryPanel<R>& p, const KeyTile<R>& tile, R* scores,
                                 std::int64_t columns) {
  using S = Simd<R, Bytes>;
  for (std::int64_t k = 0; k < tile.count; k += S::lanes) {
    const R* const keys = tile.keys + k * tile.key_stride;
    for (std::int64_t i = 0; i < p.rows; ++i) {
      const R* const q = p.q + i * tile.key_stride;
      typename S::Vector sums[S::lanes] = {};
      for (std::int64_t d = 0; d < tile.key_stride; d += S::lanes) {
        const auto numbers = S::load(q + d);
#pragma GCC unroll 16
        for (int j = 0; j < S::lanes; ++j) {
          sums[j] += numbers * S::load(keys + j * tile.key_stride + d);
        }
      }
      S::store(scores + i * columns + k, summed<S>(sums));
    }
  }
}

/// One row of scores becomes weights; as `panel_weights`.
template <class R, int Bytes>
ATTNBENCH_INLINE R few_weights(R* scores, std::int64_t columns, R& greatest, R& sum) {
  using S = Simd<R, Bytes>;
  auto most = S::load(scores);
  for (std::int64_t k = S::lanes; k < columns; k += S::lanes) {
    most = S::max(most, S::load(scores + k));
  }
  const R before = greatest;
  greatest = std::max(before, S::greatest(most));
  const R base = std::isinf(greatest) ? R{0} : greatest;
  auto total = S::broadcast(0);
  for (std::int64_t k = 0; k < columns; k += S::lanes) {
    const auto weight = S::exp2(S::load(scores + k) - base);
    S::store(scores + k, weight);
    total += weight;
  }
  const R decay = std::exp2(before - base);
  sum = sum * decay + S::sum(total);
  return decay;
}

/// As `take_tile`, with queries in rows, [rows, key_stride], and `scores` [rows, columns];
/// `columns` is tile.count rounded up to whole vectors of the widest kind at least.
template <class R, int Bytes>
void take_tile_few(const SoftmaxSizes& sizes, const std::uint8_t* mask, const R* bias,
                   const QueryPanel<R>& p, const KeyTile<R>& tile, std::int64_t value_dim,
                   R* scores, std::int64_t columns) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    using S = Simd<R, Bytes>;
    constexpr R hidden = -std::numeric_limits<R>::infinity();
    if (within(seen_keys(sizes, p.t0, p.rows), tile.s0, tile.count).empty()) return;
    few_scores<R, Bytes>(p, tile, scores, columns);
    for (std::int64_t i = 0; i < p.rows; ++i) {
      R* const row = scores + i * columns;
      const Range seen = within(seen_keys(sizes, p.t0 + i, 1), tile.s0, tile.count);
      if (seen.empty()) continue;
      for (std::int64_t k = seen.begin; bias != nullptr && k < seen.end; ++k) {
        row[k] += bias[p.t0 + i + sizes.offset - tile.s0 - k];
      }
      std::fill_n(row, seen.begin, hidden);
      for (std::int64_t k = seen.begin; mask != nullptr && k < seen.end; ++k) {
        row[k] = mask[tile.s0 + k] != 0 ? row[k] : hidden;
      }
      const std::int64_t end = rounded(seen.end, S::lanes);
      std::fill(row + seen.end, row + end, hidden);
      const R decay = few_weights<R, Bytes>(row, end, p.greatest[i], p.sum[i]);
      in_runs<8>(
          value_dim / S::lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
            constexpr int N = decltype(vectors)::value;
            detail::multiply_tile<R, Bytes, 1, N, Start::scaled>(
                seen.end - seen.begin, {row + seen.begin, columns, 1},
                tile.values + seen.begin * tile.value_stride + first * S::lanes, tile.value_stride,
                p.out + i * value_dim + first * S::lanes, value_dim, &decay);
          });
    }
  });
}

}  // namespace attnbench::kernels
