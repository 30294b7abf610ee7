// One block of tokens of the causal product, as its forward and backward passes see it: the
// features of queries and keys, and what each result is divided by.
#pragma once

#include <limits>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/cpu/product/block_rows.hpp"
#include "attention/kernels/cpu/recurrent/recurrence.hpp"

namespace attnbench::kernels {

/// Beyond `features` the numbers of a row are 0.
template <class R>
struct ProductBlock {
  std::int64_t stride;  ///< features in whole vectors
  /// phi of keys and of queries, [tokens, features] of one group of features at a time; of queries
  /// times the token's factor, for gradients
  Panels<R> scores, weights;
  Panels<R> sums;  ///< the sum of the keys' phi after each token; null where not wanted
  R* sum;          ///< [stride]: the same after the block
  R* decay;        ///< [stride]: ones, for nothing is forgotten
  R* totals;       ///< [tokens]: the sum of weights
  R* factors;      ///< [tokens]: 1 over that and epsilon, 0 where they make 0; or 1; for gradients
                   ///< given before
  R* parts;        ///< [tokens, lanes]: room for sums over features
  R *keys, *queries;  ///< [tokens, stride]: room for rows that are not whole

  ProductBlock(Workspace& space, const CausalProductSizes& sizes, std::int64_t tokens,
               bool backward)
      : stride(padded(sizes.features, sizeof(R))),
        scores(take_panels<R>(space, tokens, group_columns<R>)),
        weights(take_panels<R>(space, tokens, group_columns<R>)),
        sums(backward ? take_panels<R>(space, tokens, group_columns<R>) : Panels<R>{}),
        sum(space.take<R>(stride)),
        decay(space.take<R>(stride)),
        totals(space.take<R>(tokens)),
        factors(space.take<R>(tokens)),
        parts(space.take<R>(tokens * padded(1, sizeof(R)))),
        keys(space.take<R>(tokens * stride)),
        queries(space.take<R>(tokens * stride)) {}

  void forget() const {
    std::fill_n(decay, stride, R{1});
    std::fill_n(sum, stride, R{0});
  }
};

/// 1 over the sum of a token's weights and epsilon; 0 where they make 0.
template <class R>
ATTNBENCH_INLINE R product_factor(const CausalProductSizes& sizes, R total) {
  if (!sizes.normalised) return 1;
  const R whole = total + static_cast<R>(sizes.epsilon);
  return whole == 0 ? R{0} : R{1} / whole;
}

/// Opens the tokens at `place`.
template <class T, int Bytes>
Opened<Compute<T>> open_product(const CausalProductSizes& sizes,
                                const CausalProductArguments<T>& arguments,
                                const ProductBlock<Compute<T>>& block, const std::uint8_t* mask,
                                const BlockPlace& place) {
  using R = Compute<T>;
  // What stands for no key has the feature 0.
  const R none =
      sizes.feature == ProductFeature::identity ? R{0} : -std::numeric_limits<R>::infinity();
  return {open_rows<T, Bytes>(arguments.key, mask, place, sizes.features, 1, none, block.keys,
                              block.stride),
          open_rows<T, Bytes>(arguments.query, nullptr, place, sizes.features, 1, none,
                              block.queries, block.stride),
          place.tokens};
}

/// Makes of features [begin, end) of opened tokens what `scan` takes, in panels from column 0 on,
/// and advances their sums. In rising order. `Backward` for what gradients take, without what
/// close_product does.
template <class R, int Bytes, bool Backward>
void weigh_product(ProductFeature feature, const ProductBlock<R>& block, const Opened<R>& opened,
                   std::int64_t begin, std::int64_t end);

/// What each token's results are to be multiplied by, when all features are weighed.
template <class R, int Bytes>
void close_product(const CausalProductSizes& sizes, const ProductBlock<R>& block,
                   std::int64_t tokens);

}  // namespace attnbench::kernels
