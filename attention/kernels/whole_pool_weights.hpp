// The weights by which a block of queries reads the whole pool's averages.
#pragma once

#include "attention/kernels/fetching_product.hpp"
#include "attention/kernels/whole_pool_parts.hpp"

namespace attnbench::kernels {

/// What one worker holds while it reads.
template <class R>
struct PoolReading : PoolScratch<R> {
  R* out;      // [pool_tokens, width]
  R* tops;     // [pool_tokens]: the logit that a query's weights are measured against
  R* factors;  // [pool_tokens]: 1 / the sum of its weights
  PoolReading(Workspace& space, const PoolLayout<R>& layout)
      : PoolScratch<R>(space, layout),
        out(space.take<R>(pool_tokens * layout.width)),
        tops(space.take<R>(pool_tokens)),
        factors(space.take<R>(pool_tokens)) {}
};

/// Raises the maxima of rows, a vector each in `lanes`, to those of one group's logits
/// q.factor * q.data[t, l] + shift[l].
template <class R, int Bytes>
ATTNBENCH_INLINE void raise_tops(const Operand<R>& q, const R* shift, std::int64_t tokens,
                                 std::int64_t columns, R* lanes) {
  using S = Simd<R, Bytes>;
  in_runs<4>(columns / S::lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
    constexpr int N = decltype(vectors)::value;
    const R* row = q.data + first * S::lanes;
    const std::int64_t stride = q.stride, count = tokens;
    const auto factor = S::all(q.factor);
    typename S::Vector shifts[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) shifts[j] = S::load(shift + (first + j) * S::lanes);
    R* most = lanes;
    for (std::int64_t t = 0; t < count; ++t) {
      auto top = S::load(most);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        top = S::greater(top, factor * S::load(row + j * S::lanes) + shifts[j]);
      }
      S::store(most, top);
      row += stride;
      most += S::lanes;
    }
  });
}

/// Exponentials of the same logits against tops, to `weights` [tokens, pool_group], where the
/// logits may lie already, and their sums added to `lanes`.
template <class R, int Bytes>
ATTNBENCH_INLINE void weigh(const Operand<R>& q, const R* shift, const R* tops, std::int64_t tokens,
                            std::int64_t columns, R* lanes, R* weights) {
  using S = Simd<R, Bytes>;
  in_runs<4>(columns / S::lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
    constexpr int N = decltype(vectors)::value;
    const R* row = q.data + first * S::lanes;
    const R* const bases = tops;
    const std::int64_t stride = q.stride, count = tokens;
    const auto factor = S::all(q.factor);
    typename S::Vector shifts[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) shifts[j] = S::load(shift + (first + j) * S::lanes);
    R* sums = lanes;
    R* to = weights + first * S::lanes;
    for (std::int64_t t = 0; t < count; ++t) {
      auto total = S::load(sums);
      const R base = bases[t];
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        const auto weight = S::exp2(factor * S::load(row + j * S::lanes) + shifts[j] - base);
        S::store(to + j * S::lanes, weight);
        total += weight;
      }
      S::store(sums, total);
      row += stride;
      to += pool_group;
      sums += S::lanes;
    }
  });
}

/// Weights of a block's queries, unless they are given, in groups of latents, and s.factors.
template <class T, int Bytes>
ATTNBENCH_INLINE void weigh_queries(const WholePoolSizes& sizes, const Rows<const T>& query,
                                    const PoolShared<Compute<T>>& shared,
                                    const PoolReading<Compute<T>>& s, const BlockPlace& place,
                                    SpreadAhead& ahead) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  const auto& n = shared.layout;
  const bool made = sizes.directions.dim != 0;
  const std::int64_t tokens = place.tokens, rows = whole_units(tokens);
  const R* const shift = sizes.query == PoolQuery::logits
                             ? shared.fence
                             : shared.z_of(place.b * sizes.heads + place.h);
  const Operand<R> given =
      made ? open_units<T, Bytes>(query, nullptr, place, sizes.directions.dim, s.logits,
                                  n.token_width)
           : open_rows<T, Bytes>(query, nullptr, place, sizes.latents,
                                 static_cast<R>(sizes.scale * log2_of_e), none, s.logits, n.stride);
  const auto weights_of = [&](std::int64_t g) { return s.weights + g * pool_tokens * pool_group; };
  const auto logits_of = [&](std::int64_t g) -> Operand<R> {
    if (made) return {weights_of(g), pool_group, 1};
    return {given.data + g * pool_group, given.stride, given.factor};
  };
  std::fill_n(s.lanes, pool_tokens * S::lanes, none);
  for (std::int64_t g = 0; g < n.groups; ++g) {
    if (made) {
      FetchingProduct<R>{rows,
                         n.columns_in(g),
                         sizes.directions.dim,
                         {given.data, given.stride, 1},
                         shared.directions_of(sizes, place.h, g),
                         pool_group,
                         nullptr,
                         0,
                         weights_of(g),
                         pool_group}
          .template run<Bytes>(ahead);
    }
    raise_tops<R, Bytes>(logits_of(g), shift + g * pool_group, tokens, n.columns_in(g), s.lanes);
  }
  find_tops<R, Bytes>(s.lanes, pool_tokens, s.tops);
  std::fill_n(s.lanes, pool_tokens * S::lanes, R{0});
  for (std::int64_t g = 0; g < n.groups; ++g) {
    weigh<R, Bytes>(logits_of(g), shift + g * pool_group, s.tops, tokens, n.columns_in(g), s.lanes,
                    weights_of(g));
    std::fill_n(weights_of(g) + tokens * pool_group, (rows - tokens) * pool_group, R{0});
  }
  sum_rows<R, Bytes>(s.lanes, pool_tokens, s.factors);
  for (std::int64_t t = 0; t < pool_tokens; t += S::lanes) {
    const auto sum = S::load(s.factors + t);
    S::store(s.factors + t, sum > 0 ? R{1} / sum : S::all(0));
  }
}

}  // namespace attnbench::kernels
