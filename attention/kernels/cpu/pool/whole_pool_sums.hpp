// What the tokens of a head come down to in the whole pool: the sums of one part, and the averages
// that come of all parts.
#pragma once

#include "attention/kernels/cpu/pool/whole_pool_parts.hpp"

namespace attnbench::kernels {

/// Logits of the scores at `place` come as products with the directions: their tokens, and in
/// s.less what the product is to be less by, +infinity for a hidden token.
template <class T, int Bytes>
ATTNBENCH_INLINE Operand<Compute<T>> open_tokens(
    const WholePoolSizes& sizes, const Rows<const T>& rows, const std::uint8_t* mask,
    const PoolLayout<Compute<T>>& n, const PoolScratch<Compute<T>>& s, const BlockPlace& place) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  const Operand<R> x =
      open_units<T, Bytes>(rows, mask, place, sizes.directions.dim, s.logits, n.token_width);
  const R factor = sizes.directions.half_square
                       ? static_cast<R>(sizes.scale * sizes.scale * log2_of_e / 2)
                       : R{0};
  for (std::int64_t t = 0; t < place.tokens; ++t) {
    auto sum = S::broadcast(0);
    for (std::int64_t d = 0; d < n.token_width; d += S::lanes) {
      const auto numbers = S::load(x.data + t * x.stride + d);
      sum += numbers * numbers;
    }
    S::store(s.lanes + t * S::lanes, factor * sum);
  }
  sum_rows<R, Bytes>(s.lanes, place.tokens, s.less);
  for (std::int64_t t = 0; mask != nullptr && t < place.tokens; ++t) {
    if (mask[place.t0 + t] == 0) s.less[t] = std::numeric_limits<R>::infinity();
  }
  return x;
}

/// Turns logits of one group, from.factor * from.data[t, l] - less[t], into exponentials against
/// maxima that it raises, to `weights` [tokens, pool_group], where the logits may lie already;
/// `decay` is what sums so far shrink by. `less` may be null where `Less` is not.
template <class R, int Bytes, bool Less>
ATTNBENCH_INLINE void raise_maxima(const Operand<R>& from, const R* less, std::int64_t tokens,
                                   std::int64_t columns, R* maximum, R* normaliser, R* decay,
                                   R* weights) {
  using S = Simd<R, Bytes>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  in_runs<4>(columns / S::lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
    constexpr int N = decltype(vectors)::value;
    const std::int64_t l = first * S::lanes;
    // Copies: for all the compiler knows a store may change what is referred to.
    const R* row = from.data + l;
    const R* const rows_less = less;
    const std::int64_t stride = from.stride, count = tokens;
    const auto factor = S::broadcast(from.factor);
    const auto logit = [&](const R* at, std::int64_t t, int j) ATTNBENCH_INLINE_LAMBDA {
      const auto x = factor * S::load(at + j * S::lanes);
      return Less ? x - rows_less[t] : x;
    };
    typename S::Vector top[N], sum[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) top[j] = S::load(maximum + l + j * S::lanes);
    for (std::int64_t t = 0; t < count; ++t) {
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) top[j] = S::max(top[j], logit(row + t * stride, t, j));
    }
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      const std::int64_t at = l + j * S::lanes;
      const auto before = S::load(maximum + at);
      S::store(maximum + at, top[j]);
      // A latent that has seen nothing must not compute infinity minus infinity.
      top[j] = top[j] == none ? S::broadcast(0) : top[j];
      const auto fading = S::exp2(before - top[j]);
      S::store(decay + at, fading);
      sum[j] = fading * S::load(normaliser + at);
    }
    R* to = weights + l;
    for (std::int64_t t = 0; t < count; ++t) {
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        const auto weight = S::exp2(logit(row, t, j) - top[j]);
        S::store(to + j * S::lanes, weight);
        sum[j] += weight;
      }
      row += stride;
      to += pool_group;
    }
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) S::store(normaliser + l + j * S::lanes, sum[j]);
  });
}

/// Adds a block of tokens to sums. `less` is what the products of each token are to be less by, or
/// null; values are rows of n.width numbers.
template <class R, int Bytes>
ATTNBENCH_INLINE void sum_block(const PoolLayout<R>& n, const PoolLogits<R>& logits, const R* less,
                                const Operand<R>& values, std::int64_t tokens,
                                const PoolSums<R>& sums, const PoolScratch<R>& s,
                                SpreadPrefetch& prefetch) {
  for (std::int64_t g = 0; g < n.groups; ++g) {
    const std::int64_t first = g * pool_group, columns = n.columns_in(g);
    R* const sum = sums.sum + first * n.width;
    logits.template make<Bytes>(n, g, tokens, s.weights, prefetch);
    const Operand<R> of = logits.at(g, s.weights);
    R* const maximum = sums.maximum + first;
    R* const normaliser = sums.normaliser + first;
    if (less != nullptr) {
      raise_maxima<R, Bytes, true>(of, less, tokens, columns, maximum, normaliser, s.decay,
                                   s.weights);
    } else {
      raise_maxima<R, Bytes, false>(of, nullptr, tokens, columns, maximum, normaliser, s.decay,
                                    s.weights);
    }
    FetchingProduct<R>{n.units_in(g), n.width,       tokens, {s.weights, 1, pool_group},
                       values.data,   values.stride, sum,    n.width,
                       sum,           n.width,       s.decay}
        .template run<Bytes>(prefetch);
  }
}

/// Sums of nothing.
template <class R>
void clear(const PoolLayout<R>& n, const PoolSums<R>& sums) {
  std::fill_n(sums.maximum, n.stride, -std::numeric_limits<R>::infinity());
  std::fill_n(sums.normaliser, n.stride, R{0});
  std::fill_n(sums.sum, n.units * n.width, R{0});
}

/// The sums of part k of a head's keys.
template <class T, int Bytes>
ATTNBENCH_INLINE void sum_part(const WholePoolSizes& sizes, const WholePoolArguments<T>& in,
                               const PoolShared<Compute<T>>& shared,
                               const PoolScratch<Compute<T>>& s, std::int64_t b, std::int64_t h,
                               std::int64_t k) {
  using R = Compute<T>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  const auto& n = shared.layout;
  const std::int64_t dim = sizes.directions.dim;
  const PoolSums<R> sums = shared.part(b * sizes.heads + h, k);
  const std::uint8_t* mask = in.key_mask == nullptr ? nullptr : in.key_mask + b * in.mask_stride;
  clear(n, sums);
  for (std::int64_t t = shared.keys.begin(k); t < shared.keys.end(k); t += pool_tokens) {
    const std::int64_t tokens = std::min(pool_tokens, shared.keys.end(k) - t);
    const BlockPlace place{b, h, t, tokens};
    const Operand<R> values =
        open_rows<T, Bytes>(in.values, mask, place, sizes.value_dim, R{1}, R{0}, s.rows, n.width);
    const Operand<R> given = dim != 0 ? open_tokens<T, Bytes>(sizes, in.scores, mask, n, s, place)
                                      : open_rows<T, Bytes>(in.scores, mask, place, sizes.latents,
                                                            static_cast<R>(sizes.scale * log2_of_e),
                                                            none, s.logits, n.stride);
    SpreadPrefetch prefetch(tokens);
    if (const std::int64_t next = t + tokens; next < shared.keys.end(k)) {
      prefetch.add(in.scores, b, h, next, dim != 0 ? dim : sizes.latents);
      prefetch.add(in.values, b, h, next, sizes.value_dim);
    }
    prefetch.spread(n.groups * FetchingProduct<R>::tiles(std::min(n.units, pool_group), n.width));
    sum_block<R, Bytes>(n, {given, dim, shared.directions_of(sizes, h)},
                        dim != 0 ? s.less : nullptr, values, tokens, sums, s, prefetch);
  }
}

/// Maxima, normalisers, z and averages of group g of one head's latents from its parts, of whose
/// maxima nothing is left.
template <class R, int Bytes>
ATTNBENCH_INLINE void average(const PoolShared<R>& shared, std::int64_t head, std::int64_t g) {
  using S = Simd<R, Bytes>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  const auto& n = shared.layout;
  const PoolSums<R> total = shared.total(head);
  const std::int64_t first = g * pool_group, count = shared.keys.count;
  for (std::int64_t l = first; l < first + n.columns_in(g); l += S::lanes) {
    auto top = S::broadcast(none);
    for (std::int64_t k = 0; k < count; ++k) {
      top = S::max(top, S::load(shared.part(head, k).maximum + l));
    }
    S::store(total.maximum + l, top);
    top = top == none ? S::broadcast(0) : top;
    auto sum = S::broadcast(0);
    for (std::int64_t k = 0; k < count; ++k) {
      const PoolSums<R> part = shared.part(head, k);
      const auto decay = S::exp2(S::load(part.maximum + l) - top);
      S::store(part.maximum + l, decay);
      sum += decay * S::load(part.normaliser + l);
    }
    S::store(total.normaliser + l, sum);
  }
  R* const z = shared.z_of(head);
  for (std::int64_t l = first; l < first + n.columns_in(g); ++l) {
    const bool seen = l < n.latents && total.normaliser[l] > 0;
    z[l] = seen ? total.maximum[l] + std::log2(total.normaliser[l]) : none;
  }
  const PoolSums<R> parts = shared.part(head, 0);
  for (std::int64_t l = first; l < first + n.latents_in(g); ++l) {
    const R inverse = total.normaliser[l] > 0 ? R{1} / total.normaliser[l] : R{0};
    const R* const maxima = parts.maximum + l;
    const R* const sums = parts.sum + l * n.width;
    R* const to = total.sum + l * n.width;
    in_runs<4>(n.width / S::lanes, [&](std::int64_t v, auto vectors) ATTNBENCH_INLINE_LAMBDA {
      constexpr int N = decltype(vectors)::value;
      typename S::Vector sum[N] = {};
      for (std::int64_t k = 0; k < count; ++k) {
        const R decay = maxima[k * n.size()];
        const R* const row = sums + k * n.size() + v * S::lanes;
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) sum[j] += decay * S::load(row + j * S::lanes);
      }
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) S::store(to + (v + j) * S::lanes, inverse * sum[j]);
    });
  }
}

}  // namespace attnbench::kernels
