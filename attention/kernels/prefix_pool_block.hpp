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

/// Rows of latents lie `stride` apart; beyond `latents` scores are -infinity and weights 0. All
/// exponents are in powers of two.
template <class R>
struct PoolBlock {
  std::int64_t stride;
  R* scores;   ///< [tokens, stride]: the scores, then exp2(score - maximum)
  R* weights;  ///< [tokens, stride]: p or its logits, then p / normaliser
  R* sums;     ///< [tokens, stride]: the normalisers, where they are wanted, else null
  R* maximum;  ///< [stride], after the block
  R* normaliser;
  R* fade;  ///< [stride]: exp2(maximum before - maximum after)
  R* next;  ///< [stride]: room for the maximum to come

  PoolBlock(Workspace& space, const PrefixPoolSizes& sizes, std::int64_t tokens, bool keep_sums)
      : stride(padded(sizes.latents, sizeof(R))),
        scores(space.take<R>(tokens * stride)),
        weights(space.take<R>(tokens * stride)),
        sums(keep_sums ? space.take<R>(tokens * stride) : nullptr),
        maximum(space.take<R>(stride)),
        normaliser(space.take<R>(stride)),
        fade(space.take<R>(stride)),
        next(space.take<R>(stride)) {}

  void forget() const {
    std::fill_n(maximum, stride, -std::numeric_limits<R>::infinity());
    std::fill_n(normaliser, stride, R{0});
  }
};

/// exp2 of a row against its greatest number, and 1 over their sum; a row of -infinity is 0.
template <class R, int Bytes>
ATTNBENCH_INLINE void softmax_row(R* row, std::int64_t stride) {
  using S = Simd<R, Bytes>;
  auto most = S::load(row);
  for (std::int64_t l = S::lanes; l < stride; l += S::lanes) {
    most = S::greater(most, S::load(row + l));
  }
  const R base = S::greatest(most);
  auto total = S::all(0);
  for (std::int64_t l = 0; l < stride; l += S::lanes) {
    const auto weight = S::exp2(S::load(row + l) - base);
    S::store(row + l, weight);
    total += weight;
  }
  const R factor = R{1} / S::sum(total);
  for (std::int64_t l = 0; l < stride; l += S::lanes) {
    S::store(row + l, S::load(row + l) * factor);
  }
}

/// Reads `tokens` rows of scores and queries from token t0 on.
template <class T, int Bytes>
ATTNBENCH_INLINE void load_block(const PrefixPoolSizes& sizes,
                                 const PrefixPoolArguments<T>& arguments,
                                 const PoolBlock<Compute<T>>& block, std::int64_t b, std::int64_t h,
                                 const std::uint8_t* mask, std::int64_t t0, std::int64_t tokens) {
  using R = Compute<T>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  const auto factor = static_cast<R>(sizes.scale * log2_of_e);
  for (std::int64_t t = 0; t < tokens; ++t) {
    R* scores = block.scores + t * block.stride;
    if (mask != nullptr && mask[t0 + t] == 0) {
      std::fill_n(scores, block.stride, none);
    } else {
      widen_row(arguments.scores.at(b, h, t0 + t), sizes.latents, factor, scores, block.stride,
                none);
    }
    const T* query = arguments.query.at(b, h, t0 + t);
    R* weights = block.weights + t * block.stride;
    if (sizes.query == PoolQuery::weights) {
      widen_row(query, sizes.latents, R{1}, weights, block.stride, R{0});
    } else {
      widen_row(query, sizes.latents, factor, weights, block.stride, none);
      if (sizes.query == PoolQuery::logits) softmax_row<R, Bytes>(weights, block.stride);
    }
  }
}

/// Sets block.next to the maxima after `tokens` tokens. Whether no latent's maximum rises too far
/// after the first of them, or is first set there.
template <class R, int Bytes>
ATTNBENCH_INLINE bool raise(const PoolBlock<R>& block, std::int64_t tokens) {
  using S = Simd<R, Bytes>;
  typename S::Integers far{};
  for (std::int64_t l = 0; l < block.stride; l += S::lanes) {
    const auto first = S::greater(S::load(block.maximum + l), S::load(block.scores + l));
    auto top = first;
    for (std::int64_t t = 1; t < tokens; ++t) {
      top = S::greater(top, S::load(block.scores + t * block.stride + l));
    }
    S::store(block.next + l, top);
    const auto near = (top - first <= pool_range<R>) | (top == first);
    far |= ~reinterpret_cast<const typename S::Integers&>(near);
  }
  for (int i = 0; i < S::lanes; ++i) {
    if (far[i] != 0) return false;
  }
  return true;
}

/// The most of `tokens` tokens that one maximum a latent serves.
template <class R, int Bytes>
ATTNBENCH_INLINE std::int64_t fitting(const PoolBlock<R>& block, std::int64_t tokens) {
  while (tokens > 1 && !raise<R, Bytes>(block, tokens)) tokens /= 2;
  if (tokens == 1) raise<R, Bytes>(block, 1);
  return tokens;
}

namespace detail {

/// J vectors of latents, from l on: exponentials, normalisers and the weights over them.
template <class R, int Bytes, int J>
ATTNBENCH_INLINE void pool_columns(const PoolBlock<R>& block, PoolQuery kind, std::int64_t tokens,
                                   std::int64_t l) {
  using S = Simd<R, Bytes>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  typename S::Vector base[J];
  typename S::Vector sum[J];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) {
    const std::int64_t at = l + j * S::lanes;
    const auto after = S::load(block.next + at);
    // A latent that has seen nothing must not compute infinity minus infinity.
    base[j] = after == none ? S::all(0) : after;
    const auto fade = S::exp2(S::load(block.maximum + at) - base[j]);
    S::store(block.fade + at, fade);
    S::store(block.maximum + at, after);
    sum[j] = fade * S::load(block.normaliser + at);
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const std::int64_t at = t * block.stride + l + j * S::lanes;
      const auto weight = S::exp2(S::load(block.scores + at) - base[j]);
      S::store(block.scores + at, weight);
      sum[j] += weight;
      const auto query = S::load(block.weights + at);
      if (block.sums != nullptr) S::store(block.sums + at, sum[j]);
      if (kind == PoolQuery::logits_and_normaliser) {
        S::store(block.weights + at, sum[j] > 0 ? query + base[j] : S::all(none));
      } else {
        S::store(block.weights + at, sum[j] > 0 ? query / sum[j] : S::all(0));
      }
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) S::store(block.normaliser + l + j * S::lanes, sum[j]);
}

/// exp(logit + z) / (normaliser sum exp(logit + z)), from logit + maximum and the normalisers.
template <class R, int Bytes>
ATTNBENCH_INLINE void normalise_row(R* weights, const R* sums, std::int64_t stride) {
  using S = Simd<R, Bytes>;
  auto most = S::load(weights);
  for (std::int64_t l = S::lanes; l < stride; l += S::lanes) {
    most = S::greater(most, S::load(weights + l));
  }
  const R top = S::greatest(most);
  const R base = top == -std::numeric_limits<R>::infinity() ? R{0} : top;
  auto total = S::all(0);
  for (std::int64_t l = 0; l < stride; l += S::lanes) {
    const auto weight = S::exp2(S::load(weights + l) - base);
    S::store(weights + l, weight);
    total += weight * S::load(sums + l);
  }
  const R sum = S::sum(total);
  const R factor = sum > 0 ? R{1} / sum : R{0};
  for (std::int64_t l = 0; l < stride; l += S::lanes) {
    S::store(weights + l, S::load(weights + l) * factor);
  }
}

}  // namespace detail

/// Makes of the loaded scores and queries of `tokens` fitting tokens what `scan` takes, and
/// advances maximum and normaliser.
template <class R, int Bytes>
ATTNBENCH_INLINE void weigh(const PoolBlock<R>& block, PoolQuery kind, std::int64_t tokens) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  std::int64_t l = 0;
  for (; l + 4 * lanes <= block.stride; l += 4 * lanes) {
    detail::pool_columns<R, Bytes, 4>(block, kind, tokens, l);
  }
  for (; l < block.stride; l += lanes) detail::pool_columns<R, Bytes, 1>(block, kind, tokens, l);
  if (kind != PoolQuery::logits_and_normaliser) return;
  for (std::int64_t t = 0; t < tokens; ++t) {
    detail::normalise_row<R, Bytes>(block.weights + t * block.stride, block.sums + t * block.stride,
                                    block.stride);
  }
}

}  // namespace attnbench::kernels
