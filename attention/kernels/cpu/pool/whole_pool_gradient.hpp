// What a head's gradients through the whole pool are made of; the passes over its tokens are
// whole_pool_backward.cpp.
#pragma once

#include "attention/kernels/cpu/pool/whole_pool_parts.hpp"

namespace attnbench::kernels {

/// M and dM of one head transposed, and per latent what dk subtracts.
template <class R>
struct PoolTransposed {
  R *average, *gradient;  ///< [value_dim, stride]
  R* less;                ///< [stride]
};

template <class R>
struct PoolGradientShared : PoolShared<R> {
  std::int64_t heads;
  R* grads;       // [heads, queries.count, units * width + stride]: parts of dM, and of sum dq
  R* transposed;  // [heads, 2 value_dim * stride + stride]

  PoolGradientShared(Workspace& space, const WholePoolSizes& sizes)
      : PoolShared<R>(space, sizes),
        heads(sizes.batch * sizes.heads),
        grads(space.take<R>(heads * this->queries.count * grad_size())),
        transposed(space.take<R>(heads * transposed_size())) {}

  std::int64_t grad_size() const {
    return this->layout.units * this->layout.width + this->layout.stride;
  }
  std::int64_t transposed_size() const {
    return (2 * this->layout.value_dim + 1) * this->layout.stride;
  }
  R* grad(std::int64_t head, std::int64_t k) const {
    return grads + (head * this->queries.count + k) * grad_size();
  }
  PoolTransposed<R> transposed_of(std::int64_t head) const {
    R* const at = transposed + head * transposed_size();
    const std::int64_t size = this->layout.value_dim * this->layout.stride;
    return {at, at + size, at + 2 * size};
  }
};

/// What one worker holds.
template <class R>
struct PoolGradientScratch : PoolScratch<R> {
  R* grads;  // [pool_tokens, stride]
  R* back;   // [pool_tokens, width]
  R* z;      // [stride]
  PoolGradientScratch(Workspace& space, const PoolLayout<R>& layout)
      : PoolScratch<R>(space, layout),
        grads(space.take<R>(pool_tokens * layout.stride)),
        back(space.take<R>(pool_tokens * layout.width)),
        z(space.take<R>(layout.stride)) {}
};

/// exp2 of a row against its greatest number, over their sum; 0 where all are -infinity.
template <class R, int Bytes>
ATTNBENCH_INLINE void pool_softmax(R* row, std::int64_t stride) {
  using S = Simd<R, Bytes>;
  auto most = S::load(row);
  for (std::int64_t l = S::lanes; l < stride; l += S::lanes) {
    most = S::max(most, S::load(row + l));
  }
  const R top = S::greatest(most);
  if (top == -std::numeric_limits<R>::infinity()) {
    std::fill_n(row, stride, R{0});
    return;
  }
  auto total = S::broadcast(0);
  for (std::int64_t l = 0; l < stride; l += S::lanes) {
    const auto weight = S::exp2(S::load(row + l) - top);
    S::store(row + l, weight);
    total += weight;
  }
  const R factor = R{1} / S::sum(total);
  for (std::int64_t l = 0; l < stride; l += S::lanes) {
    S::store(row + l, S::load(row + l) * factor);
  }
}

/// The weights p of a block's queries, 0 beyond the latents; z in powers of two where it is in
/// them.
template <class T, int Bytes>
ATTNBENCH_INLINE void load_weights(const WholePoolSizes& sizes, const Rows<const T>& query,
                                   const Compute<T>* z, std::int64_t stride,
                                   const BlockPlace& place, Compute<T>* to) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  const bool given = sizes.query == PoolQuery::weights;
  const R factor = given ? R{1} : static_cast<R>(sizes.scale * log2_of_e);
  for (std::int64_t t = 0; t < place.tokens; ++t) {
    R* const row = to + t * stride;
    widen_row<T, Bytes>(query.at(place.b, place.h, place.t0 + t), sizes.latents, factor, row,
                        stride, given ? R{0} : none);
    if (given) continue;
    for (std::int64_t l = 0; sizes.query == PoolQuery::logits_plus_z && l < stride; l += S::lanes) {
      S::store(row + l, S::load(row + l) + S::load(z + l));
    }
    pool_softmax<R, Bytes>(row, stride);
  }
  std::fill_n(to + place.tokens * stride, (whole_units(place.tokens) - place.tokens) * stride,
              R{0});
}

/// One row's dp becomes dq, without the scale. Weights sum to one but for rounding: divided by
/// their sum, what is left where all dp are equal (a single key) is one rounding and not that of
/// all sums.
template <class R, int Bytes>
ATTNBENCH_INLINE void through_softmax(R* dp, const R* p, std::int64_t stride) {
  using S = Simd<R, Bytes>;
  auto total = S::broadcast(0);
  auto mass = S::broadcast(0);
  for (std::int64_t l = 0; l < stride; l += S::lanes) {
    total += S::load(p + l) * S::load(dp + l);
    mass += S::load(p + l);
  }
  const R all = S::sum(mass);
  const R delta = all > 0 ? S::sum(total) / all : R{0};
  for (std::int64_t l = 0; l < stride; l += S::lanes) {
    S::store(dp + l, S::load(p + l) * (S::load(dp + l) - delta));
  }
}

}  // namespace attnbench::kernels
