// The backward pass of the tiled softmax on one tile of queries and one of keys: five products of
// which four need nothing transposed, for their left sides are broadcast and may lie either way.
#pragma once

#include "attention/kernels/cpu/product/next_memory.hpp"
#include "attention/kernels/cpu/softmax/bias.hpp"
#include "attention/kernels/cpu/softmax/tile.hpp"

namespace attnbench::kernels {

constexpr std::int64_t gradient_queries = panel;   ///< of one tile
constexpr std::int64_t gradient_keys = 2 * panel;  ///< of one tile

/// One tile of queries, in rows of `stride` and `value_stride`; `gradient_queries` of them, zeros
/// past `rows`.
template <class R>
struct GradientQueries {
  std::int64_t t0, rows;
  const R *q, *d_out;
  std::int64_t stride, value_stride;
  const R *lse, *delta;  ///< [rows]: in base e; sum_d d_out * out
  R* dq;                 ///< [gradient_queries, stride]: added to
  MemoryOnTheWay* next;  ///< what the next tile reads
};

/// Products of seen pairs in a tile, over each number of a head: they fetch what comes.
constexpr std::int64_t fetching_products = gradient_keys / panel * (gradient_queries / row_unit);

/// One tile of keys, `gradient_keys` of them, zeros past `count`.
template <class R>
struct GradientKeys {
  std::int64_t s0, count;
  const R* keys;               ///< [gradient_keys, stride]
  const R* keys_transposed;    ///< [head_dim, gradient_keys], times scale and log2(e)
  const R* values_transposed;  ///< [value_dim, gradient_keys]
  R *dk, *dv;                  ///< added to
};

/// out[i, j] = sum_d left[i, d] right[d, j], for groups of rows and panels of keys in which any
/// pair is seen.
template <class R, int Bytes>
ATTNBENCH_INLINE void seen_products(const SoftmaxSizes& sizes, const GradientQueries<R>& q,
                                    const GradientKeys<R>& k, const R* left,
                                    std::int64_t left_stride, const R* right, std::int64_t depth,
                                    R* out) {
  constexpr int lanes = Simd<R, Bytes>::lanes;
  constexpr int M = has_32_registers<Bytes> ? 8 : 4;
  for (std::int64_t j = 0; j < k.count; j += panel) {
    for (std::int64_t i = 0; i < q.rows; i += M) {
      const std::int64_t rows = std::min<std::int64_t>(M, q.rows - i);
      if (within(seen_keys(sizes, q.t0 + i, rows), k.s0 + j, panel).empty()) continue;
      in_runs<3>(panel / lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
        constexpr int N = decltype(vectors)::value;
        detail::multiply_tile<R, Bytes, M, N, Start::zero>(
            depth, {left + i * left_stride, left_stride, 1}, right + j + first * lanes,
            gradient_keys, out + i * gradient_keys + j + first * lanes, gradient_keys, nullptr,
            q.next->next(depth, right));
      });
    }
  }
}

/// Weights from scores, and the gradient of the scores from that of the weights, in place; 0 where
/// the key is not seen, by selection.
template <class R, int Bytes>
ATTNBENCH_INLINE void differentiate_row(Range seen, const std::uint8_t* mask, R lse, R delta,
                                        R* weights, R* d_scores) {
  using S = Simd<R, Bytes>;
  const std::int64_t begin = seen.empty() ? 0 : seen.begin / S::lanes * S::lanes;
  const std::int64_t end = seen.empty() ? 0 : rounded(seen.end, S::lanes);
  for (std::int64_t j = begin; j < end; j += S::lanes) {
    const auto weight = S::exp2(S::load(weights + j) - lse);
    S::store(weights + j, weight);
    S::store(d_scores + j, weight * (S::load(d_scores + j) - delta));
  }
  if (seen.empty()) seen = {0, 0};
  for (R* const row : {weights, d_scores}) {
    std::fill_n(row, seen.begin, R{0});
    std::fill(row + seen.end, row + gradient_keys, R{0});
    for (std::int64_t j = seen.begin; mask != nullptr && j < seen.end; ++j) {
      row[j] = mask[j] != 0 ? row[j] : R{0};
    }
  }
}

/// into[i, :] += sum_l left[i, l] right[l, :], six rows at a time, over the l that `range_of` says
/// for them.
template <class R, int Bytes, class RangeOf>
ATTNBENCH_INLINE void add_products(std::int64_t rows, Left<R> left, const R* right,
                                   std::int64_t width, R* into, const RangeOf& range_of) {
  constexpr int lanes = Simd<R, Bytes>::lanes;
  constexpr int M = 6;
  for (std::int64_t i = 0; i < rows; i += M) {
    const Range range = range_of(i, std::min<std::int64_t>(M, rows - i));
    if (range.empty()) continue;
    in_runs<has_32_registers<Bytes> ? 4 : 2>(
        width / lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
          constexpr int N = decltype(vectors)::value;
          detail::multiply_tile<R, Bytes, M, N, Start::kept>(
              range.end - range.begin, left.from(i, range.begin),
              right + range.begin * width + first * lanes, width, into + i * width + first * lanes,
              width);
        });
  }
}

/// Adds what one tile of scores gives to dq, dk and dv, these without the factor scale. `weights`
/// and `d_scores` hold [gradient_queries, gradient_keys]. `mask` is that of the tile's keys or
/// null; `bias` a table or null, and so is `d_bias`, to which the biases' gradient is added.
template <class R, int Bytes>
void differentiate_tile(const SoftmaxSizes& sizes, const std::uint8_t* mask, const R* bias,
                        const GradientQueries<R>& q, const GradientKeys<R>& k, R* weights,
                        R* d_scores, R* d_bias) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    if (within(seen_keys(sizes, q.t0, q.rows), k.s0, k.count).empty()) return;
    seen_products<R, Bytes>(sizes, q, k, q.q, q.stride, k.keys_transposed, sizes.head_dim, weights);
    seen_products<R, Bytes>(sizes, q, k, q.d_out, q.value_stride, k.values_transposed,
                            sizes.value_dim, d_scores);
    for (std::int64_t i = 0; i < q.rows; ++i) {
      constexpr int lanes = Simd<R, Bytes>::lanes;
      const Range seen = within(seen_keys(sizes, q.t0 + i, 1), k.s0, k.count);
      R* const row = weights + i * gradient_keys;
      R* const d_row = d_scores + i * gradient_keys;
      const std::int64_t begin = seen.begin / lanes * lanes;
      const std::int64_t distance = k.s0 + begin - q.t0 - i - sizes.offset;
      const bool biased = bias != nullptr && !seen.empty();
      if (biased) add_row<R, Bytes>(bias + distance, seen.end - begin, row + begin);
      differentiate_row<R, Bytes>(seen, mask, q.lse[i] * static_cast<R>(log2_of_e), q.delta[i], row,
                                  d_row);
      if (biased) add_row<R, Bytes>(d_row + begin, seen.end - begin, d_bias + distance);
    }
    // Rows past the last query hold weights of other tiles.
    std::fill_n(d_scores + q.rows * gradient_keys, (gradient_queries - q.rows) * gradient_keys,
                R{0});

    const auto queries_of = [&](std::int64_t j, std::int64_t count) ATTNBENCH_INLINE_LAMBDA {
      return within(
          {seeing_queries(sizes, k.s0 + j).begin, seeing_queries(sizes, k.s0 + j + count - 1).end},
          q.t0, q.rows);
    };
    const auto keys_of = [&](std::int64_t i, std::int64_t count) ATTNBENCH_INLINE_LAMBDA {
      return within(seen_keys(sizes, q.t0 + i, count), k.s0, k.count);
    };
    add_products<R, Bytes>(k.count, {weights, 1, gradient_keys}, q.d_out, q.value_stride, k.dv,
                           queries_of);
    add_products<R, Bytes>(k.count, {d_scores, 1, gradient_keys}, q.q, q.stride, k.dk, queries_of);
    add_products<R, Bytes>(q.rows, {d_scores, gradient_keys, 1}, k.keys, q.stride, q.dq, keys_of);
  });
}

}  // namespace attnbench::kernels
