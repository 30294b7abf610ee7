// One block of tokens of the causal product, as its forward and backward passes see it: the
// features of queries and keys, and what each result is divided by.
#pragma once

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/recurrence.hpp"

namespace attnbench::kernels {

template <class R>
struct ProductBlock {
  std::int64_t stride;
  R *scores, *weights;  ///< phi of keys and of queries, [tokens, stride]
  R* total;             ///< [stride]: the sum of the keys' phi so far
  R* totals;            ///< [tokens, stride]: the same after each token; null where not wanted
  R* fade;              ///< [stride]: ones, for nothing is forgotten
  R* factors;           ///< [tokens]: 1 over the sum of weights, 0 where that is 0; or 1

  ProductBlock(Workspace& space, const CausalProductSizes& sizes, std::int64_t tokens,
               bool keep_totals)
      : stride(padded(sizes.features, sizeof(R))),
        scores(space.take<R>(tokens * stride)),
        weights(space.take<R>(tokens * stride)),
        total(space.take<R>(stride)),
        totals(keep_totals ? space.take<R>(tokens * stride) : nullptr),
        fade(space.take<R>(stride)),
        factors(space.take<R>(tokens)) {}

  R factor(std::int64_t t) const { return factors[t]; }
  void forget() const {
    std::fill_n(fade, stride, R{1});
    std::fill_n(total, stride, R{0});
  }
};

/// phi of a row, 0 beyond the features.
template <class T, int Bytes>
ATTNBENCH_INLINE void load_features(const T* from, const CausalProductSizes& sizes, Compute<T>* row,
                                    std::int64_t stride) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  widen_row(from, sizes.features, R{1}, row, stride, R{0});
  if (sizes.feature == ProductFeature::identity) return;
  for (std::int64_t f = 0; f < stride; f += S::lanes) {
    const auto x = S::load(row + f);
    const auto below = S::exp2((x < 0 ? x : S::all(0)) * static_cast<R>(log2_of_e));
    S::store(row + f, x > 0 ? x + R{1} : below);
  }
  for (std::int64_t f = sizes.features; f < stride; ++f) row[f] = 0;
}

/// Advances the sum of the keys' features token by token, and takes each token's factor from it.
template <class R, int Bytes>
ATTNBENCH_INLINE void normalise(const CausalProductSizes& sizes, const ProductBlock<R>& block,
                                std::int64_t tokens) {
  using S = Simd<R, Bytes>;
  for (std::int64_t t = 0; t < tokens; ++t) {
    auto sum = S::all(0);
    for (std::int64_t f = 0; f < block.stride; f += S::lanes) {
      const auto total = S::load(block.total + f) + S::load(block.scores + t * block.stride + f);
      S::store(block.total + f, total);
      if (block.totals != nullptr) S::store(block.totals + t * block.stride + f, total);
      sum += total * S::load(block.weights + t * block.stride + f);
    }
    const R whole = S::sum(sum) + static_cast<R>(sizes.epsilon);
    block.factors[t] = whole == 0 ? R{0} : R{1} / whole;
  }
}

/// Reads `tokens` tokens from t0 on and makes of them what `scan` takes.
template <class T, int Bytes>
ATTNBENCH_INLINE void load_product(const CausalProductSizes& sizes,
                                   const CausalProductArguments<T>& arguments,
                                   const ProductBlock<Compute<T>>& block, std::int64_t b,
                                   std::int64_t h, const std::uint8_t* mask, std::int64_t t0,
                                   std::int64_t tokens) {
  using R = Compute<T>;
  for (std::int64_t t = 0; t < tokens; ++t) {
    load_features<T, Bytes>(arguments.query.at(b, h, t0 + t), sizes,
                            block.weights + t * block.stride, block.stride);
    R* const key = block.scores + t * block.stride;
    if (mask != nullptr && mask[t0 + t] == 0) {
      std::fill_n(key, block.stride, R{0});
    } else {
      load_features<T, Bytes>(arguments.key.at(b, h, t0 + t), sizes, key, block.stride);
    }
    block.factors[t] = 1;
  }
  if (sizes.normalised) normalise<R, Bytes>(sizes, block, tokens);
}

}  // namespace attnbench::kernels
