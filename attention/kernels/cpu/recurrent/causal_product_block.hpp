// One block of tokens of the causal product, as its forward and backward passes see it: the
// features of queries and keys, and what each result is divided by.
//
// With a decay, let A_t be the product of the decays of the block's tokens after its first one, up
// to t. The weight A_t / A_s of a pair is made of a factor of each: keys are divided by A_s C and
// results multiplied by A_t C, so that a block is a plain product of these, and the memory is
// divided by the last A_t C. Rounding is that of a memory that decays with each token, for factors
// only scale it. A block ends before A falls below 2^-120 in float32, and C, a power of two, puts
// the factors evenly around 1: no number leaves the range that its inputs have not stretched.
#pragma once

#include <limits>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/cpu/product/block_rows.hpp"
#include "attention/kernels/cpu/recurrent/decay.hpp"
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
  R* decay;        ///< [stride]: what the block multiplies the memory by; ones without a decay
  R* totals;       ///< [tokens]: the sum of weights
  R* factors;      ///< [tokens]: 1 over that and epsilon, 0 where they make 0; or 1; for gradients
                   ///< given before. With a decay A_t C times the scale of the results
  R* key_factors;  ///< [tokens]: with a decay 1 / (A_s C)
  R* scale;        ///< [1]: with a decay what the memory lacks after the block
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
        key_factors(space.take<R>(sizes.decays ? tokens : 0)),
        scale(space.take<R>(1)),
        parts(space.take<R>(tokens * padded(1, sizeof(R)))),
        keys(space.take<R>(tokens * stride)),
        queries(space.take<R>(tokens * stride)) {}

  void forget() const {
    std::fill_n(decay, stride, R{1});
    std::fill_n(sum, stride, R{0});
    *scale = 1;
  }
};

/// 1 over the sum of a token's weights and epsilon; 0 where they make 0.
template <class R>
ATTNBENCH_INLINE R product_factor(const CausalProductSizes& sizes, R total) {
  if (!sizes.normalised) return 1;
  const R whole = total + static_cast<R>(sizes.epsilon);
  return whole == 0 ? R{0} : R{1} / whole;
}

/// Factors, decay and scale of a block of a decay that begins at `place`; how many of the tokens it
/// takes, one at least.
template <class R, int Bytes>
std::int64_t open_decays(const Rows<const R>& log_decay, double scale, const ProductBlock<R>& block,
                         const BlockPlace& place);

/// Opens the tokens at `place`, or with a decay as many as fit a block.
template <class T, int Bytes>
Opened<Compute<T>> open_product(const CausalProductSizes& sizes,
                                const CausalProductArguments<T>& arguments,
                                const ProductBlock<Compute<T>>& block, const std::uint8_t* mask,
                                BlockPlace place) {
  using R = Compute<T>;
  if (sizes.decays) {
    place.tokens = open_decays<R, Bytes>(arguments.log_decay, sizes.scale, block, place);
  }
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
/// and advances their sums, which nothing reads where there is a decay. In rising order. `Backward`
/// for what gradients take, without what close_product does.
template <class R, int Bytes, bool Backward>
void weigh_product(const CausalProductSizes& sizes, const ProductBlock<R>& block,
                   const Opened<R>& opened, std::int64_t begin, std::int64_t end);

/// What each token's results are to be multiplied by, when all features are weighed.
template <class R, int Bytes>
void close_product(const CausalProductSizes& sizes, const ProductBlock<R>& block,
                   std::int64_t tokens);

}  // namespace attnbench::kernels
