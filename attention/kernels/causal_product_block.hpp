// One block of tokens of the causal product, as its forward and backward passes see it: the
// features of queries and keys, and what each result is divided by.
#pragma once

#include <limits>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/recurrence.hpp"

namespace attnbench::kernels {

/// Beyond `features` the numbers of a row are 0.
template <class R>
struct ProductBlock {
  std::int64_t stride;  ///< features in whole vectors
  /// phi of keys and of queries, [tokens, features], forwards of one group of features at a time
  Panels<R> scores, weights;
  Panels<R> sums;     ///< the sum of the keys' phi after each token; null where not wanted
  R* sum;             ///< [stride]: the same after the block
  R* fade;            ///< [stride]: ones, for nothing is forgotten
  R* totals;          ///< [tokens]: the sum of weights
  R* factors;         ///< [tokens]: 1 over that and epsilon, 0 where they make 0; or 1
  R* parts;           ///< [tokens, lanes]: room for sums over features
  R *keys, *queries;  ///< [tokens, stride]: room for rows that are not whole

  ProductBlock(Workspace& space, const CausalProductSizes& sizes, std::int64_t tokens,
               bool backward)
      : stride(padded(sizes.features, sizeof(R))),
        scores(take_panels<R>(space, tokens, backward ? stride : group_columns<R>)),
        weights(take_panels<R>(space, tokens, backward ? stride : group_columns<R>)),
        sums(backward ? take_panels<R>(space, tokens, stride) : Panels<R>{}),
        sum(space.take<R>(stride)),
        fade(space.take<R>(stride)),
        totals(space.take<R>(tokens)),
        factors(space.take<R>(tokens)),
        parts(space.take<R>(tokens * padded(1, sizeof(R)))),
        keys(space.take<R>(tokens * stride)),
        queries(space.take<R>(tokens * stride)) {}

  void forget() const {
    std::fill_n(fade, stride, R{1});
    std::fill_n(sum, stride, R{0});
  }
};

namespace detail {

/// phi of J vectors, in place.
template <class R, int Bytes, ProductFeature Feature, int J>
ATTNBENCH_INLINE void to_features(typename Simd<R, Bytes>::Vector (&x)[J]) {
  using S = Simd<R, Bytes>;
  if constexpr (Feature == ProductFeature::elu_plus_one) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const auto below = S::exp2((x[j] < 0 ? x[j] : S::all(0)) * static_cast<R>(log2_of_e));
      x[j] = x[j] > 0 ? x[j] + R{1} : below;
    }
  }
}

/// J vectors of features, from f on, to the panels' columns from `column` on.
template <class R, int Bytes, ProductFeature Feature, bool Backward, int J>
ATTNBENCH_INLINE void product_columns(const ProductBlock<R>& block, const Opened<R>& opened,
                                      std::int64_t f, std::int64_t column) {
  using S = Simd<R, Bytes>;
  typename S::Vector sum[J];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) sum[j] = S::load(block.sum + f + j * S::lanes);
  // Copies: for all the compiler knows a store may change what `block` refers to.
  const Operand<R> k = opened.keys;
  const Operand<R> q = opened.queries;
  const std::int64_t key_stride = k.stride;
  const std::int64_t query_stride = q.stride;
  const R* key_row = k.data + f;
  const R* query_row = q.data + f;
  R* part = block.parts;
  R* scores = block.scores.at(0, column);
  R* weights = block.weights.at(0, column);
  R* sums = Backward ? block.sums.at(0, column) : nullptr;
  std::int64_t beside[J];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) beside[j] = block.scores.at(0, column + j * S::lanes) - scores;
  for (std::int64_t t = 0; t < opened.tokens; ++t) {
    typename S::Vector score[J];
    typename S::Vector weight[J];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      score[j] = S::load(key_row + j * S::lanes);
      weight[j] = S::load(query_row + j * S::lanes);
    }
    to_features<R, Bytes, Feature, J>(score);
    to_features<R, Bytes, Feature, J>(weight);
    auto total = S::all(0);
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const std::int64_t at = beside[j];
      sum[j] += score[j];
      total += weight[j] * sum[j];
      S::store(scores + at, score[j]);
      S::store(weights + at, weight[j]);
      if constexpr (Backward) S::store(sums + at, sum[j]);
    }
    S::store(part, f == 0 ? total : S::load(part) + total);
    part += S::lanes;
    key_row += key_stride;
    query_row += query_stride;
    scores += panel_columns<R>;
    weights += panel_columns<R>;
    if constexpr (Backward) sums += panel_columns<R>;
  }
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) S::store(block.sum + f + j * S::lanes, sum[j]);
}

template <class R, int Bytes, ProductFeature Feature, bool Backward>
ATTNBENCH_INLINE void product_features(const ProductBlock<R>& block, const Opened<R>& opened,
                                       std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  std::int64_t f = begin;
  for (; f + 4 * lanes <= end; f += 4 * lanes) {
    product_columns<R, Bytes, Feature, Backward, 4>(block, opened, f, f - begin);
  }
  for (; f < end; f += lanes) {
    product_columns<R, Bytes, Feature, Backward, 1>(block, opened, f, f - begin);
  }
}

}  // namespace detail

/// 1 over the sum of a token's weights and epsilon; 0 where they make 0.
template <class R>
ATTNBENCH_INLINE R product_factor(const CausalProductSizes& sizes, R total) {
  if (!sizes.normalised) return 1;
  const R whole = total + static_cast<R>(sizes.epsilon);
  return whole == 0 ? R{0} : R{1} / whole;
}

/// Opens the `tokens` tokens from t0 on.
template <class T, int Bytes>
ATTNBENCH_INLINE Opened<Compute<T>> open_product(const CausalProductSizes& sizes,
                                                 const CausalProductArguments<T>& arguments,
                                                 const ProductBlock<Compute<T>>& block,
                                                 std::int64_t b, std::int64_t h,
                                                 const std::uint8_t* mask, std::int64_t t0,
                                                 std::int64_t tokens) {
  using R = Compute<T>;
  // What stands for no key has the feature 0.
  const R none =
      sizes.feature == ProductFeature::identity ? R{0} : -std::numeric_limits<R>::infinity();
  return {open_rows<T, Bytes>(arguments.key, mask, b, h, t0, tokens, sizes.features, 1, none,
                              block.keys, block.stride),
          open_rows<T, Bytes>(arguments.query, nullptr, b, h, t0, tokens, sizes.features, 1, none,
                              block.queries, block.stride),
          tokens};
}

/// Makes of features [begin, end) of opened tokens what `scan` takes, in panels from column 0 on,
/// and advances their sums. In rising order.
template <class R, int Bytes, bool Backward>
ATTNBENCH_INLINE void weigh_product(ProductFeature feature, const ProductBlock<R>& block,
                                    const Opened<R>& opened, std::int64_t begin, std::int64_t end) {
  if (feature == ProductFeature::identity) {
    detail::product_features<R, Bytes, ProductFeature::identity, Backward>(block, opened, begin,
                                                                           end);
  } else {
    detail::product_features<R, Bytes, ProductFeature::elu_plus_one, Backward>(block, opened, begin,
                                                                               end);
  }
}

/// What each token's results are to be multiplied by, when all features are weighed.
template <class R, int Bytes>
ATTNBENCH_INLINE void close_product(const CausalProductSizes& sizes, const ProductBlock<R>& block,
                                    std::int64_t tokens) {
  using S = Simd<R, Bytes>;
  for (std::int64_t t = 0; t < tokens; ++t) {
    block.totals[t] = S::sum(S::load(block.parts + t * S::lanes));
    block.factors[t] = product_factor(sizes, block.totals[t]);
  }
}

}  // namespace attnbench::kernels
