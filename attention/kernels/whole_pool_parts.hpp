// What the forward and backward passes of the whole pool share: the tokens of a head in parts, the
// sums of one part, the averages that come of all.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/kernels/multiply.hpp"
#include "attention/kernels/stored.hpp"
#include "attention/kernels/whole_pool.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

constexpr std::int64_t pool_tokens = 64;  ///< of one block

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

  explicit PoolLayout(const WholePoolSizes& sizes)
      : latents(sizes.latents),
        value_dim(sizes.value_dim),
        stride(padded(sizes.latents, sizeof(R))),
        width(padded(sizes.value_dim, sizeof(R))),
        units((sizes.latents + row_unit - 1) / row_unit * row_unit) {}
  std::int64_t size() const { return 2 * stride + units * width; }
  PoolSums<R> sums(R* at) const { return {at, at + stride, at + 2 * stride}; }
};

/// The sums of all parts, and what comes of them.
template <class R>
struct PoolShared {
  PoolLayout<R> layout;
  PoolParts keys, queries;
  R* parts;   // [batch * heads, keys.count, layout.size()]
  R* totals;  // [batch * heads, layout.size()]: the sums are the averages M

  PoolShared(Workspace& space, const WholePoolSizes& sizes)
      : layout(sizes),
        keys(sizes, sizes.key_length),
        queries(sizes, sizes.length),
        parts(space.take<R>(sizes.batch * sizes.heads * keys.count * layout.size())),
        totals(space.take<R>(sizes.batch * sizes.heads * layout.size())) {}
  PoolSums<R> part(std::int64_t head, std::int64_t k) const {
    return layout.sums(parts + (head * keys.count + k) * layout.size());
  }
  PoolSums<R> total(std::int64_t head) const { return layout.sums(totals + head * layout.size()); }
};

/// What one worker holds: a block of tokens.
template <class R>
struct PoolScratch {
  R* weights;  // [pool_tokens, stride]
  R* rows;     // [pool_tokens, width]
  R* fade;     // [stride]

  PoolScratch(Workspace& space, const PoolLayout<R>& layout)
      : weights(space.take<R>(pool_tokens * layout.stride)),
        rows(space.take<R>(pool_tokens * layout.width)),
        fade(space.take<R>(layout.stride)) {}
};

inline std::int64_t pool_rows(std::int64_t tokens) {
  return (tokens + row_unit - 1) / row_unit * row_unit;
}

/// Scores of `tokens` tokens from t0 on in powers of two, -infinity where hidden or beyond.
template <class T, int Bytes>
ATTNBENCH_INLINE void load_scores(const WholePoolSizes& sizes, const PrefixPoolArguments<T>& in,
                                  const std::uint8_t* mask, std::int64_t b, std::int64_t h,
                                  std::int64_t t0, std::int64_t tokens, std::int64_t stride,
                                  Compute<T>* to) {
  using R = Compute<T>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (mask != nullptr && mask[t0 + t] == 0) {
      std::fill_n(to + t * stride, stride, none);
    } else {
      widen_row<T, Bytes>(in.scores.at(b, h, t0 + t), sizes.latents,
                          static_cast<R>(sizes.scale * log2_of_e), to + t * stride, stride, none);
    }
  }
}

/// `tokens` rows from t0 on, 0 for a hidden one, whatever stands there, and in whole units.
template <class T, int Bytes>
ATTNBENCH_INLINE void load_rows(const Rows<const T>& rows, const std::uint8_t* mask, std::int64_t b,
                                std::int64_t h, std::int64_t t0, std::int64_t tokens,
                                std::int64_t count, Compute<T>* to, std::int64_t width) {
  using R = Compute<T>;
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (mask != nullptr && mask[t0 + t] == 0) {
      std::fill_n(to + t * width, width, R{0});
    } else {
      widen_row<T, Bytes>(rows.at(b, h, t0 + t), count, R{1}, to + t * width, width, R{0});
    }
  }
  std::fill_n(to + tokens * width, (pool_rows(tokens) - tokens) * width, R{0});
}

/// `tokens` rows times `factor`, to row t0 and on of `to`.
template <class T, int Bytes>
ATTNBENCH_INLINE void put_rows(const Compute<T>* from, std::int64_t stride, std::int64_t tokens,
                               std::int64_t count, Compute<T> factor, const Rows<T>& to,
                               std::int64_t b, std::int64_t h, std::int64_t t0) {
  using S = Simd<Compute<T>, Bytes>;
  for (std::int64_t t = 0; t < tokens; ++t) {
    T* const row = to.at(b, h, t0 + t);
    for (std::int64_t i = 0; i < count; i += S::lanes) {
      store_part<T, Bytes>(row + i, factor * S::load(from + t * stride + i), count - i);
    }
  }
}

/// exp2 of a row against its greatest number, over their sum; 0 where all are -infinity.
template <class R, int Bytes>
ATTNBENCH_INLINE void pool_softmax(R* row, std::int64_t stride) {
  using S = Simd<R, Bytes>;
  auto most = S::load(row);
  for (std::int64_t l = S::lanes; l < stride; l += S::lanes) {
    most = S::greater(most, S::load(row + l));
  }
  const R top = S::greatest(most);
  if (top == -std::numeric_limits<R>::infinity()) {
    std::fill_n(row, stride, R{0});
    return;
  }
  auto total = S::all(0);
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

/// Turns a block's scores into exponentials against maxima that it raises; s.fade is what its sums
/// so far shrink by. Whether any does.
template <class R, int Bytes>
ATTNBENCH_INLINE bool raise_maxima(const PoolLayout<R>& n, const PoolSums<R>& sums,
                                   const PoolScratch<R>& s, std::int64_t tokens) {
  using S = Simd<R, Bytes>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  bool fades = false;
  for (std::int64_t l = 0; l < n.stride; l += S::lanes) {
    const auto before = S::load(sums.maximum + l);
    auto top = before;
    for (std::int64_t t = 0; t < tokens; ++t) {
      top = S::greater(top, S::load(s.weights + t * n.stride + l));
    }
    // A latent that has seen nothing must not compute infinity minus infinity.
    const auto base = top == none ? S::all(0) : top;
    const auto fade = S::exp2(before - base);
    auto sum = fade * S::load(sums.normaliser + l);
    for (std::int64_t t = 0; t < tokens; ++t) {
      R* const at = s.weights + t * n.stride + l;
      const auto weight = S::exp2(S::load(at) - base);
      S::store(at, weight);
      sum += weight;
    }
    S::store(sums.maximum + l, top);
    S::store(sums.normaliser + l, sum);
    S::store(s.fade + l, fade);
    for (int i = 0; i < S::lanes; ++i) fades = fades || fade[i] != 1;
  }
  return fades;
}

/// The sums of one part.
template <class T, int Bytes>
ATTNBENCH_INLINE void sum_part(const WholePoolSizes& sizes, const PrefixPoolArguments<T>& in,
                               const PoolShared<Compute<T>>& shared,
                               const PoolScratch<Compute<T>>& s, std::int64_t b, std::int64_t h,
                               std::int64_t k) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  const auto& n = shared.layout;
  const PoolSums<R> sums = shared.part(b * sizes.heads + h, k);
  const std::uint8_t* mask = in.key_mask == nullptr ? nullptr : in.key_mask + b * in.mask_stride;
  std::fill_n(sums.maximum, n.stride, -std::numeric_limits<R>::infinity());
  std::fill_n(sums.normaliser, n.stride + n.units * n.width, R{0});
  for (std::int64_t t = shared.keys.begin(k); t < shared.keys.end(k); t += pool_tokens) {
    const std::int64_t tokens = std::min(pool_tokens, shared.keys.end(k) - t);
    load_scores<T, Bytes>(sizes, in, mask, b, h, t, tokens, n.stride, s.weights);
    load_rows<T, Bytes>(in.values, mask, b, h, t, tokens, sizes.value_dim, s.rows, n.width);
    if (raise_maxima<R, Bytes>(n, sums, s, tokens)) {
      for (std::int64_t l = 0; l < n.latents; ++l) {
        R* const row = sums.sum + l * n.width;
        for (std::int64_t d = 0; d < n.width; d += S::lanes) {
          S::store(row + d, s.fade[l] * S::load(row + d));
        }
      }
    }
    multiply<R, Bytes, true>(n.units, n.width, tokens, {s.weights, 1, n.stride}, s.rows, n.width,
                             sums.sum, n.width);
  }
}

/// One head's maxima, normalisers and averages from its parts.
template <class R>
void average(const PoolShared<R>& shared, std::int64_t head) {
  const auto& n = shared.layout;
  const PoolSums<R> total = shared.total(head);
  constexpr R none = -std::numeric_limits<R>::infinity();
  std::fill_n(total.maximum, n.stride, none);
  std::fill_n(total.normaliser, n.stride + n.units * n.width, R{0});
  for (std::int64_t l = 0; l < n.latents; ++l) {
    for (std::int64_t k = 0; k < shared.keys.count; ++k) {
      total.maximum[l] = std::max(total.maximum[l], shared.part(head, k).maximum[l]);
    }
    if (total.maximum[l] == none) continue;
    R* const row = total.sum + l * n.width;
    for (std::int64_t k = 0; k < shared.keys.count; ++k) {
      const PoolSums<R> part = shared.part(head, k);
      const R fade = std::exp2(part.maximum[l] - total.maximum[l]);
      total.normaliser[l] += fade * part.normaliser[l];
      for (std::int64_t d = 0; d < n.width; ++d) row[d] += fade * part.sum[l * n.width + d];
    }
    for (std::int64_t d = 0; d < n.width; ++d) row[d] /= total.normaliser[l];
  }
}

/// The weights p of `tokens` queries from t0 on, 0 beyond the latents; z in powers of two where it
/// is in them.
template <class T, int Bytes>
ATTNBENCH_INLINE void load_weights(const WholePoolSizes& sizes, const PrefixPoolArguments<T>& in,
                                   const PoolLayout<Compute<T>>& n, const Compute<T>* z,
                                   std::int64_t b, std::int64_t h, std::int64_t t0,
                                   std::int64_t tokens, Compute<T>* to) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  const bool given = sizes.query == PoolQuery::weights;
  const R factor = given ? R{1} : static_cast<R>(sizes.scale * log2_of_e);
  for (std::int64_t t = 0; t < tokens; ++t) {
    R* const row = to + t * n.stride;
    widen_row<T, Bytes>(in.query.at(b, h, t0 + t), sizes.latents, factor, row, n.stride,
                        given ? R{0} : none);
    if (given) continue;
    for (std::int64_t l = 0; sizes.query == PoolQuery::logits_and_normaliser && l < n.stride;
         l += S::lanes) {
      S::store(row + l, S::load(row + l) + S::load(z + l));
    }
    pool_softmax<R, Bytes>(row, n.stride);
  }
  std::fill_n(to + tokens * n.stride, (pool_rows(tokens) - tokens) * n.stride, R{0});
}

/// z [stride] in powers of two, -infinity for a latent that has seen nothing.
template <class R>
void normalisers_of(const PoolLayout<R>& n, const PoolSums<R>& total, R* z) {
  for (std::int64_t l = 0; l < n.stride; ++l) {
    z[l] = total.normaliser[l] > 0 ? total.maximum[l] + std::log2(total.normaliser[l])
                                   : -std::numeric_limits<R>::infinity();
  }
}

}  // namespace attnbench::kernels
