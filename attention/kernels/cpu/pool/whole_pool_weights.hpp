// The weights by which a block of queries reads the whole pool's averages.
#pragma once

#include "attention/kernels/cpu/pool/whole_pool_parts.hpp"

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
  R* weights_of(std::int64_t g) const { return this->weights + g * pool_tokens * pool_group; }
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
    const auto factor = S::broadcast(q.factor);
    typename S::Vector shifts[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) shifts[j] = S::load(shift + (first + j) * S::lanes);
    R* most = lanes;
    for (std::int64_t t = 0; t < count; ++t) {
      auto top = S::load(most);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        top = S::max(top, factor * S::load(row + j * S::lanes) + shifts[j]);
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
    const auto factor = S::broadcast(q.factor);
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

/// Weights of a block's queries from logits to which `shift` [stride] is added, in groups of
/// latents, s.tops, and 1 / their sums in s.factors.
template <class R, int Bytes>
ATTNBENCH_INLINE void weigh_queries(const PoolLayout<R>& n, const PoolLogits<R>& logits,
                                    const R* shift, std::int64_t tokens, const PoolReading<R>& s,
                                    SpreadPrefetch& prefetch) {
  using S = Simd<R, Bytes>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  const std::int64_t rows = whole_units(tokens);
  std::fill_n(s.lanes, pool_tokens * S::lanes, none);
  for (std::int64_t g = 0; g < n.groups; ++g) {
    logits.template make<Bytes>(n, g, tokens, s.weights_of(g), prefetch);
    raise_tops<R, Bytes>(logits.at(g, s.weights_of(g)), shift + g * pool_group, tokens,
                         n.columns_in(g), s.lanes);
  }
  find_tops<R, Bytes>(s.lanes, pool_tokens, s.tops);
  std::fill_n(s.lanes, pool_tokens * S::lanes, R{0});
  for (std::int64_t g = 0; g < n.groups; ++g) {
    R* const weights = s.weights_of(g);
    weigh<R, Bytes>(logits.at(g, weights), shift + g * pool_group, s.tops, tokens, n.columns_in(g),
                    s.lanes, weights);
    std::fill_n(weights + tokens * pool_group, (rows - tokens) * pool_group, R{0});
  }
  sum_rows<R, Bytes>(s.lanes, pool_tokens, s.factors);
  for (std::int64_t t = 0; t < pool_tokens; t += S::lanes) {
    const auto sum = S::load(s.factors + t);
    S::store(s.factors + t, sum > 0 ? R{1} / sum : S::broadcast(0));
  }
}

/// Results of a block: weights times averages [latents, width], of weights that are made times
/// s.factors. `given` are those that are not made, or null.
template <class T, int Bytes>
ATTNBENCH_INLINE void read_averages(const PoolLayout<Compute<T>>& n,
                                    const Operand<Compute<T>>* given, const Compute<T>* averages,
                                    const PoolReading<Compute<T>>& s, const Rows<T>& out,
                                    const BlockPlace& place, SpreadPrefetch& prefetch) {
  using R = Compute<T>;
  const std::int64_t rows = whole_units(place.tokens);
  // The last product may write to where the results belong.
  R* to = s.out;
  std::int64_t to_stride = n.width;
  if constexpr (std::is_same_v<T, R>) {
    if (rows == place.tokens && n.width == n.value_dim) {
      to = out.at(place.b, place.h, place.t0);
      to_stride = out.row_stride;
    }
  }
  for (std::int64_t g = 0; g < n.groups; ++g) {
    const Left<R> weights = given != nullptr
                                ? Left<R>{given->data + g * pool_group, given->stride, 1}
                                : Left<R>{s.weights_of(g), pool_group, 1};
    const bool last = g == n.groups - 1;
    FetchingProduct<R>{rows,
                       n.width,
                       n.latents_in(g),
                       weights,
                       averages + g * pool_group * n.width,
                       n.width,
                       g == 0 ? nullptr : s.out,
                       n.width,
                       last ? to : s.out,
                       last ? to_stride : n.width,
                       nullptr,
                       last && given == nullptr ? s.factors : nullptr}
        .template run<Bytes>(prefetch);
  }
  if (to == s.out) put_rows<T, Bytes>(s.out, n.width, n.value_dim, R{1}, out, place);
}

}  // namespace attnbench::kernels
