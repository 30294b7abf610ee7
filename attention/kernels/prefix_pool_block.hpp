// One block of tokens of the prefix pool, as its forward and backward passes see it: exponentials
// against one maximum a latent, running normalisers, weights over them.
#pragma once

#include <algorithm>
#include <limits>

#include "attention/kernels/prefix_pool.hpp"
#include "attention/kernels/recurrence.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

/// How far a latent's running maximum may rise within a block, in powers of two: the first tokens'
/// sums must not leave the exponent range, nor the weights over them overflow.
template <class R>
constexpr R pool_range = sizeof(R) == 8 ? R{800} : R{90};

/// Beyond `latents` the numbers of a row are 0. All exponents are in powers of two.
template <class R>
struct PoolBlock {
  std::int64_t stride;  ///< latents in whole vectors
  /// [tokens, latents], forwards of one group of latents at a time: exp2(score - maximum)
  Panels<R> scores;
  Panels<R> weights;   ///< what p / normaliser is after the token's factor
  Panels<R> shares;    ///< what p is after it; null where it is not wanted
  Panels<R> inverses;  ///< 1 / normaliser, 0 where nothing was seen; null where not wanted
  R* maximum;          ///< [stride], after the block
  R* normaliser;
  R* fade;     ///< [stride]: exp2(maximum before - maximum after)
  R* next;     ///< [stride]: room for the maximum to come
  R* tops;     ///< [tokens]: the greatest logit of a query, which the weights are measured against
  R* totals;   ///< [tokens]: the sum of the shares
  R* factors;  ///< [tokens]: 1 / total, 0 where that is 0
  R* parts;    ///< [tokens, lanes]: room for sums over latents
  R *keys, *queries;  ///< [tokens, stride]: room for rows that are not whole

  PoolBlock(Workspace& space, const PrefixPoolSizes& sizes, std::int64_t tokens, bool backward)
      : stride(padded(sizes.latents, sizeof(R))),
        scores(take_panels<R>(space, tokens, backward ? stride : group_columns<R>)),
        weights(take_panels<R>(space, tokens, backward ? stride : group_columns<R>)),
        shares(backward ? take_panels<R>(space, tokens, stride) : Panels<R>{}),
        inverses(backward ? take_panels<R>(space, tokens, stride) : Panels<R>{}),
        maximum(space.take<R>(stride)),
        normaliser(space.take<R>(stride)),
        fade(space.take<R>(stride)),
        next(space.take<R>(stride)),
        tops(space.take<R>(tokens)),
        totals(space.take<R>(tokens)),
        factors(space.take<R>(tokens)),
        parts(space.take<R>(tokens * padded(1, sizeof(R)))),
        keys(space.take<R>(tokens * stride)),
        queries(space.take<R>(tokens * stride)) {}

  void forget() const {
    std::fill_n(maximum, stride, -std::numeric_limits<R>::infinity());
    std::fill_n(normaliser, stride, R{0});
  }
};

namespace detail {

/// Maxima of J vectors of latents, from l on; whether none rises too far after the first token, or
/// is first set there.
template <class R, int Bytes, int J>
ATTNBENCH_INLINE bool raise_columns(const PoolBlock<R>& block, const Operand<R>& k,
                                    std::int64_t tokens, std::int64_t l) {
  using S = Simd<R, Bytes>;
  typename S::Vector first[J];
  typename S::Vector top[J];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) {
    const std::int64_t at = l + j * S::lanes;
    first[j] = S::greater(S::load(block.maximum + at), k.factor * S::load(k.data + at));
    top[j] = first[j];
  }
  for (std::int64_t t = 1; t < tokens; ++t) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      top[j] = S::greater(top[j], k.factor * S::load(k.data + t * k.stride + l + j * S::lanes));
    }
  }
  typename S::Integers far{};
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) {
    S::store(block.next + l + j * S::lanes, top[j]);
    const auto near = (top[j] - first[j] <= pool_range<R>) | (top[j] == first[j]);
    far |= ~reinterpret_cast<const typename S::Integers&>(near);
  }
  typename S::Int any = 0;
  for (int i = 0; i < S::lanes; ++i) any |= far[i];
  return any == 0;
}

}  // namespace detail

/// Sets block.next to the maxima after `tokens` tokens. Whether one maximum a latent serves them.
template <class R, int Bytes>
ATTNBENCH_INLINE bool raise(const PoolBlock<R>& block, const Operand<R>& k, std::int64_t tokens) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  bool near = true;
  std::int64_t l = 0;
  for (; l + 4 * lanes <= block.stride; l += 4 * lanes) {
    near &= detail::raise_columns<R, Bytes, 4>(block, k, tokens, l);
  }
  for (; l < block.stride; l += lanes) {
    near &= detail::raise_columns<R, Bytes, 1>(block, k, tokens, l);
  }
  return near;
}

/// The most of `tokens` tokens that one maximum a latent serves.
template <class R, int Bytes>
ATTNBENCH_INLINE std::int64_t fitting(const PoolBlock<R>& block, const Operand<R>& k,
                                      std::int64_t tokens) {
  while (!raise<R, Bytes>(block, k, tokens) && tokens > 1) tokens /= 2;
  return tokens;
}

namespace detail {

/// Each query's greatest logit, with the maximum of the latent added where z decides.
template <class R, int Bytes, PoolQuery Kind>
ATTNBENCH_INLINE void find_tops(const PoolBlock<R>& block, const Operand<R>& q,
                                std::int64_t tokens) {
  using S = Simd<R, Bytes>;
  constexpr bool with_z = Kind == PoolQuery::logits_and_normaliser;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const R* const row = q.data + t * q.stride;
    auto most = S::all(-std::numeric_limits<R>::infinity());
    for (std::int64_t l = 0; l < block.stride; l += S::lanes) {
      auto logit = q.factor * S::load(row + l);
      if constexpr (with_z) logit += S::load(block.next + l);
      most = S::greater(most, logit);
    }
    block.tops[t] = S::greatest(most);
  }
}

/// J vectors of latents, from l on: exponentials, normalisers and the weights over them, to the
/// panels' columns from `column` on.
template <class R, int Bytes, PoolQuery Kind, bool Backward, int J>
ATTNBENCH_INLINE void pool_columns(const PoolBlock<R>& block, const Opened<R>& opened,
                                   std::int64_t l, std::int64_t column) {
  using S = Simd<R, Bytes>;
  constexpr R infinity = std::numeric_limits<R>::infinity();
  constexpr bool with_z = Kind == PoolQuery::logits_and_normaliser;
  typename S::Vector base[J];
  typename S::Vector sum[J];
  typename S::Vector shift[J];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) {
    const std::int64_t at = l + j * S::lanes;
    const auto after = S::load(block.next + at);
    const auto unseen = after == -infinity;
    // A latent that has seen nothing must not compute infinity minus infinity, and weighs nothing:
    // an infinite normaliser sees to that.
    base[j] = unseen ? S::all(0) : after;
    shift[j] = after;
    const auto fade = S::exp2(S::load(block.maximum + at) - base[j]);
    S::store(block.fade + at, fade);
    S::store(block.maximum + at, after);
    sum[j] = unseen ? S::all(with_z ? R{0} : infinity) : fade * S::load(block.normaliser + at);
  }
  // Copies: for all the compiler knows a store may change what `block` refers to.
  const Operand<R> k = opened.keys;
  const Operand<R> q = opened.queries;
  const auto on_keys = S::all(k.factor);
  const auto on_queries = S::all(q.factor);
  const std::int64_t key_stride = k.stride;
  const std::int64_t query_stride = q.stride;
  const R* key_row = k.data + l;
  const R* query_row = q.data + l;
  const R* const tops = block.tops;
  R* part = block.parts;
  R* scores = block.scores.at(0, column);
  R* weights = block.weights.at(0, column);
  R* shares = Backward ? block.shares.at(0, column) : nullptr;
  R* inverses = Backward ? block.inverses.at(0, column) : nullptr;
  std::int64_t beside[J];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) beside[j] = block.scores.at(0, column + j * S::lanes) - scores;
  for (std::int64_t t = 0; t < opened.tokens; ++t) {
    typename S::Vector score[J];
    typename S::Vector share[J];
    // Where nothing was seen: not infinity minus infinity.
    const R top = Kind == PoolQuery::weights || tops[t] == -infinity ? R{0} : tops[t];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      score[j] = S::exp2(on_keys * S::load(key_row + j * S::lanes) - base[j]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      share[j] = on_queries * S::load(query_row + j * S::lanes);
      if constexpr (with_z) share[j] += shift[j];
      if constexpr (Kind != PoolQuery::weights) share[j] = S::exp2(share[j] - top);
    }
    auto total = S::all(0);
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const std::int64_t at = beside[j];
      S::store(scores + at, score[j]);
      sum[j] += score[j];
      if constexpr (with_z) {
        S::store(weights + at, share[j]);
        share[j] *= sum[j];
      } else if constexpr (Backward) {
        const auto inverse = R{1} / sum[j];
        S::store(weights + at, share[j] * inverse);
        S::store(inverses + at, inverse);
      } else {
        S::store(weights + at, share[j] / sum[j]);
      }
      if constexpr (Backward) S::store(shares + at, share[j]);
      total += share[j];
    }
    if constexpr (Kind != PoolQuery::weights) {
      S::store(part, l == 0 ? total : S::load(part) + total);
      part += S::lanes;
    }
    key_row += key_stride;
    query_row += query_stride;
    scores += panel_columns<R>;
    weights += panel_columns<R>;
    if constexpr (Backward) {
      shares += panel_columns<R>;
      inverses += panel_columns<R>;
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) {
    const std::int64_t at = l + j * S::lanes;
    S::store(block.normaliser + at, shift[j] == -infinity ? S::all(0) : sum[j]);
  }
}

template <class R, int Bytes, PoolQuery Kind, bool Backward>
ATTNBENCH_INLINE void weigh_kind(const PoolBlock<R>& block, const Opened<R>& opened,
                                 std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  std::int64_t l = begin;
  for (; l + 4 * lanes <= end; l += 4 * lanes) {
    pool_columns<R, Bytes, Kind, Backward, 4>(block, opened, l, l - begin);
  }
  for (; l < end; l += lanes) {
    pool_columns<R, Bytes, Kind, Backward, 1>(block, opened, l, l - begin);
  }
}

}  // namespace detail

/// Opens as many of the `loaded` tokens from t0 on as one maximum a latent serves: the maxima after
/// them, and what each token's weights are measured against.
template <class T, int Bytes>
ATTNBENCH_INLINE Opened<Compute<T>> open_pool(const PrefixPoolSizes& sizes,
                                              const PrefixPoolArguments<T>& arguments,
                                              const PoolBlock<Compute<T>>& block, std::int64_t b,
                                              std::int64_t h, const std::uint8_t* mask,
                                              std::int64_t t0, std::int64_t loaded) {
  using R = Compute<T>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  const auto factor = static_cast<R>(sizes.scale * log2_of_e);
  const bool weights = sizes.query == PoolQuery::weights;
  Opened<R> opened;
  opened.keys = open_rows<T, Bytes>(arguments.scores, mask, b, h, t0, loaded, sizes.latents, factor,
                                    none, block.keys, block.stride);
  opened.queries = open_rows<T, Bytes>(arguments.query, nullptr, b, h, t0, loaded, sizes.latents,
                                       weights ? R{1} : factor, weights ? R{0} : none,
                                       block.queries, block.stride);
  opened.tokens = fitting<R, Bytes>(block, opened.keys, loaded);
  if (sizes.query == PoolQuery::logits) {
    detail::find_tops<R, Bytes, PoolQuery::logits>(block, opened.queries, opened.tokens);
  } else if (!weights) {
    detail::find_tops<R, Bytes, PoolQuery::logits_and_normaliser>(block, opened.queries,
                                                                  opened.tokens);
  }
  return opened;
}

/// Makes of latents [begin, end) of opened tokens what `scan` takes, in panels from column 0 on,
/// and advances their maxima and normalisers. In rising order.
template <class R, int Bytes, bool Backward>
ATTNBENCH_INLINE void weigh_pool(PoolQuery kind, const PoolBlock<R>& block, const Opened<R>& opened,
                                 std::int64_t begin, std::int64_t end) {
  switch (kind) {
    case PoolQuery::weights:
      detail::weigh_kind<R, Bytes, PoolQuery::weights, Backward>(block, opened, begin, end);
      break;
    case PoolQuery::logits:
      detail::weigh_kind<R, Bytes, PoolQuery::logits, Backward>(block, opened, begin, end);
      break;
    case PoolQuery::logits_and_normaliser:
      detail::weigh_kind<R, Bytes, PoolQuery::logits_and_normaliser, Backward>(block, opened, begin,
                                                                               end);
      break;
  }
}

/// What each token's results are to be multiplied by, when all latents are weighed.
template <class R, int Bytes>
ATTNBENCH_INLINE void close_pool(PoolQuery kind, const PoolBlock<R>& block, std::int64_t tokens) {
  using S = Simd<R, Bytes>;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const R total = kind == PoolQuery::weights ? R{1} : S::sum(S::load(block.parts + t * S::lanes));
    block.totals[t] = total;
    block.factors[t] = total > 0 ? R{1} / total : R{0};
  }
}

}  // namespace attnbench::kernels
