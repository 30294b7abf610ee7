// What the forward and backward passes of the whole pool share: a head's tokens in parts and its
// latents in groups, and what all workers and each of them hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/kernels/cpu/product/block_units.hpp"
#include "attention/kernels/cpu/product/fetching_product.hpp"
#include "attention/kernels/whole_pool.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

constexpr std::int64_t pool_tokens = 64;  ///< of one block
/// Latents that are weighed together: a block's weights and values and their sums fit the first
/// cache.
constexpr std::int64_t pool_group = 64;

/// A head's tokens in parts of whole blocks, so many whatever the threads that few heads keep many
/// of them busy: the same bits for any number.
struct PoolParts {
  std::int64_t tokens, length, count;

  PoolParts(const WholePoolSizes& sizes, std::int64_t all) : tokens(0), length(all), count(0) {
    const std::int64_t most = std::clamp<std::int64_t>(32 / (sizes.batch * sizes.heads), 1, 16);
    const std::int64_t blocks = (length + pool_tokens - 1) / pool_tokens;
    tokens = (blocks + most - 1) / most * pool_tokens;
    count = tokens == 0 ? 0 : (length + tokens - 1) / tokens;
  }
  std::int64_t begin(std::int64_t k) const { return k * tokens; }
  std::int64_t end(std::int64_t k) const { return std::min(length, (k + 1) * tokens); }
};

/// Latents' maxima, normalisers and sums of values, of one part or of all; in powers of two.
template <class R>
struct PoolSums {
  R *maximum, *normaliser;  ///< [stride]
  R* sum;                   ///< [units, width]
};

/// Sizes with padding.
template <class R>
struct PoolLayout {
  std::int64_t latents, value_dim;
  std::int64_t stride, width;  ///< latents and value_dim in whole vectors
  std::int64_t units;          ///< latents in whole units of rows
  std::int64_t groups;         ///< of latents, the last one of what is left
  std::int64_t token_width;    ///< of tokens with directions, in whole vectors

  explicit PoolLayout(const WholePoolSizes& sizes)
      : latents(sizes.latents),
        value_dim(sizes.value_dim),
        stride(padded(sizes.latents, sizeof(R))),
        width(padded(sizes.value_dim, sizeof(R))),
        units((sizes.latents + row_unit - 1) / row_unit * row_unit),
        groups((stride + pool_group - 1) / pool_group),
        token_width(padded(sizes.directions.dim, sizeof(R))) {}
  std::int64_t size() const { return 2 * stride + units * width; }
  PoolSums<R> sums(R* at) const { return {at, at + stride, at + 2 * stride}; }
  /// The latents of group g: all, those in whole units of rows, those in whole vectors.
  std::int64_t latents_in(std::int64_t g) const { return in(g, latents); }
  std::int64_t units_in(std::int64_t g) const { return in(g, units); }
  std::int64_t columns_in(std::int64_t g) const { return in(g, stride); }

 private:
  static std::int64_t in(std::int64_t g, std::int64_t all) {
    return std::min(pool_group, all - g * pool_group);
  }
};

/// The sums of all parts, and what comes of them; the directions as products want them.
template <class R>
struct PoolShared {
  PoolLayout<R> layout;
  PoolParts keys, queries;
  R* parts;       // [batch * heads, keys.count, layout.size()]
  R* totals;      // [batch * heads, layout.size()]: the sums are the averages M
  R* z;           // [batch * heads, stride]: in powers of two, -infinity where nothing was seen
  R* fence;       // [stride]: 0, and -infinity past the last latent
  R* directions;  // [heads, groups, dim, pool_group]: times scale and log2(e)

  PoolShared(Workspace& space, const WholePoolSizes& sizes)
      : layout(sizes),
        keys(sizes, sizes.key_length),
        queries(sizes, sizes.length),
        parts(space.take<R>(sizes.batch * sizes.heads * keys.count * layout.size())),
        totals(space.take<R>(sizes.batch * sizes.heads * layout.size())),
        z(space.take<R>(sizes.batch * sizes.heads * layout.stride)),
        fence(space.take<R>(layout.stride)),
        directions(space.take<R>(sizes.heads * directions_size(sizes))) {}
  PoolSums<R> part(std::int64_t head, std::int64_t k) const {
    return layout.sums(parts + (head * keys.count + k) * layout.size());
  }
  PoolSums<R> total(std::int64_t head) const { return layout.sums(totals + head * layout.size()); }
  R* z_of(std::int64_t head) const { return z + head * layout.stride; }
  std::int64_t directions_size(const WholePoolSizes& sizes) const {
    return layout.groups * sizes.directions.dim * pool_group;
  }
  R* directions_of(const WholePoolSizes& sizes, std::int64_t h) const {
    return directions + h * directions_size(sizes);
  }

  /// To be called before any part is looked at.
  void set_fence() const {
    std::fill_n(fence, layout.stride, -std::numeric_limits<R>::infinity());
    std::fill_n(fence, layout.latents, R{0});
  }
};

/// Rows from `first` on become directions, to [groups, dim, pool_group]: times `factor`, 0 for
/// hidden ones. `room` holds pool_group rows of n.token_width.
template <class T, int Bytes>
ATTNBENCH_INLINE void turn_rows(const PoolLayout<Compute<T>>& n, const Rows<const T>& rows,
                                const std::uint8_t* mask, const BlockPlace& first, std::int64_t dim,
                                Compute<T> factor, Compute<T>* room, Compute<T>* to) {
  using R = Compute<T>;
  for (std::int64_t g = 0; g < n.groups; ++g) {
    const BlockPlace place{first.b, first.h, first.t0 + g * pool_group, n.latents_in(g)};
    const Operand<R> x =
        open_rows<T, Bytes>(rows, mask, place, dim, R{1}, R{0}, room, n.token_width);
    pack_transposed<R, Bytes>(x.data, x.stride, place.tokens, dim, factor,
                              to + g * dim * pool_group, pool_group);
  }
}

/// Logits of a block: rows of them, or tokens whose products with directions they are.
template <class R>
struct PoolLogits {
  Operand<R> rows;           ///< in whole units where they are tokens
  std::int64_t dim = 0;      ///< of tokens; 0 = rows of logits
  const R* directions = {};  ///< [groups, dim, pool_group]: times scale and log2(e)

  /// Where those of group g lie, or will: in `room` [tokens, pool_group] those that are products.
  Operand<R> at(std::int64_t g, const R* room) const {
    if (dim != 0) return {room, pool_group, 1};
    return {rows.data + g * pool_group, rows.stride, rows.factor};
  }
  /// Makes them, unless they are there.
  template <int Bytes>
  ATTNBENCH_INLINE void make(const PoolLayout<R>& n, std::int64_t g, std::int64_t tokens, R* room,
                             SpreadPrefetch& prefetch) const {
    if (dim == 0) return;
    FetchingProduct<R>{whole_units(tokens),
                       n.columns_in(g),
                       dim,
                       {rows.data, rows.stride, 1},
                       directions + g * dim * pool_group,
                       pool_group,
                       nullptr,
                       0,
                       room,
                       pool_group}
        .template run<Bytes>(prefetch);
  }
};

/// What one worker holds: a block of tokens.
template <class R>
struct PoolScratch {
  R* weights;  // [groups, pool_tokens, pool_group]; backwards [pool_tokens, stride]
  R* logits;   // [pool_tokens, stride or token_width]: room for rows that are not whole
  R* rows;     // [pool_tokens, width]: the same for values
  R* decay;    // [pool_group]
  R* less;     // [pool_tokens]
  R* lanes;    // [pool_tokens, of the widest vector]: room for sums and maxima of rows

  PoolScratch(Workspace& space, const PoolLayout<R>& layout)
      : weights(space.take<R>(layout.groups * pool_tokens * pool_group)),
        logits(space.take<R>(pool_tokens * std::max(layout.stride, layout.token_width))),
        rows(space.take<R>(pool_tokens * layout.width)),
        decay(space.take<R>(pool_group)),
        less(space.take<R>(pool_tokens)),
        lanes(space.take<R>(pool_tokens * padded(1, sizeof(R)))) {}
};

}  // namespace attnbench::kernels
