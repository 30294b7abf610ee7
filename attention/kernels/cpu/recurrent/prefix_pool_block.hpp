// One block of tokens of the prefix pool, as its forward and backward passes see it: exponentials
// against one maximum a latent, running normalisers, weights over them.
#pragma once

#include <algorithm>
#include <limits>

#include "attention/kernels/cpu/product/block_rows.hpp"
#include "attention/kernels/cpu/recurrent/recurrence.hpp"
#include "attention/kernels/prefix_pool.hpp"

namespace attnbench::kernels {

/// How far a latent's running maximum may rise within a block, in powers of two: the first tokens'
/// sums must not leave the exponent range, nor the weights over them overflow.
template <class R>
constexpr R pool_range = sizeof(R) == 8 ? R{800} : R{90};

/// Beyond `latents` the numbers of a row are 0. All exponents are in powers of two.
template <class R>
struct PoolBlock {
  std::int64_t stride;  ///< latents in whole vectors
  /// [tokens, latents] of one group of latents at a time: exp2(score - maximum)
  Panels<R> scores;
  Panels<R> weights;  ///< what p / normaliser is after the token's factor; for gradients p /
                      ///< normaliser
  Panels<R> sums;     ///< the normalisers, where nothing was seen 1, or 0 if they are in p; null
                      ///< where not wanted
  R* maximum;         ///< [stride], after the block
  R* normaliser;
  R* decay;           ///< [stride]: exp2(maximum before - maximum after)
  R* next;            ///< [stride]: room for the maximum to come
  R* tops;            ///< [tokens]: the logit of a query that its weights are measured against
  R* totals;          ///< [tokens]: the sum of the shares
  R* factors;         ///< [tokens], and room for a vector behind: 1 / total, 0 where that is 0;
                      ///< for gradients given before
  R* parts;           ///< [tokens, lanes]: room for sums over latents
  R *keys, *queries;  ///< [tokens, stride]: room for rows that are not whole

  PoolBlock(Workspace& space, const PrefixPoolSizes& sizes, std::int64_t tokens, bool backward)
      : stride(padded(sizes.latents, sizeof(R))),
        scores(take_panels<R>(space, tokens, group_columns<R>)),
        weights(take_panels<R>(space, tokens, group_columns<R>)),
        sums(backward ? take_panels<R>(space, tokens, group_columns<R>) : Panels<R>{}),
        maximum(space.take<R>(stride)),
        normaliser(space.take<R>(stride)),
        decay(space.take<R>(stride)),
        next(space.take<R>(stride)),
        tops(space.take<R>(tokens)),
        totals(space.take<R>(tokens)),
        factors(space.take<R>(tokens + panel_columns<R>)),
        parts(space.take<R>(tokens * padded(1, sizeof(R)))),
        keys(space.take<R>(tokens * stride)),
        queries(space.take<R>(tokens * stride)) {}

  void forget() const {
    std::fill_n(maximum, stride, -std::numeric_limits<R>::infinity());
    std::fill_n(normaliser, stride, R{0});
  }
};

/// Sets block.next to the maxima after as many of the opened tokens as one maximum a latent serves,
/// leaves `opened` with these, and sets block.tops.
template <class R, int Bytes>
void measure_pool(PoolQuery kind, const PoolBlock<R>& block, Opened<R>& opened);

/// Makes of latents [begin, end) of opened tokens what `scan` takes, in panels from column 0 on,
/// and advances their maxima and normalisers. In rising order. `Backward` for what gradients take,
/// without what close_pool does.
template <class R, int Bytes, bool Backward>
void weigh_pool(PoolQuery kind, const PoolBlock<R>& block, const Opened<R>& opened,
                std::int64_t begin, std::int64_t end);

/// What each token's results are to be multiplied by, when all latents are weighed.
template <class R, int Bytes>
void close_pool(PoolQuery kind, const PoolBlock<R>& block, std::int64_t tokens);

/// Opens as many of the tokens at `place` as one maximum a latent serves. `tops`: with what their
/// weights are to be measured against, where that is known; else it is found.
template <class T, int Bytes>
Opened<Compute<T>> open_pool(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                             const PoolBlock<Compute<T>>& block, const std::uint8_t* mask,
                             const BlockPlace& place, const Compute<T>* tops = nullptr) {
  using R = Compute<T>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  const auto factor = static_cast<R>(sizes.scale * log2_of_e);
  const bool weights = sizes.query == PoolQuery::weights;
  Opened<R> opened{
      open_rows<T, Bytes>(arguments.scores, mask, place, sizes.latents, factor, none, block.keys,
                          block.stride),
      open_rows<T, Bytes>(arguments.query, nullptr, place, sizes.latents, weights ? R{1} : factor,
                          weights ? R{0} : none, block.queries, block.stride),
      place.tokens};
  const bool known = weights || tops != nullptr;
  measure_pool<R, Bytes>(known ? PoolQuery::weights : sizes.query, block, opened);
  if (tops != nullptr) std::copy_n(tops, opened.tokens, block.tops);
  return opened;
}

}  // namespace attnbench::kernels
