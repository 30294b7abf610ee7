// What a head's gradients through the running memory are made of, a block of tokens at a time; the
// sweeps over the blocks are lavo_backward.cpp.
#pragma once

#include <algorithm>
#include <limits>

#include "attention/kernels/cpu/lavo/lavo_block.hpp"
#include "attention/kernels/lavo.hpp"

namespace attnbench::kernels {

/// What all workers share.
template <class R>
struct MemoryGradientShared {
  PackedBases<R> bases;
  std::int64_t units;  // bases in whole units of rows
  R* d_bases;          // [batch * heads, units, width]

  MemoryGradientShared(Workspace& space, const LavoSizes& sizes)
      : bases(space, sizes),
        units(whole_units(sizes.bases)),
        d_bases(space.take<R>(sizes.batch * sizes.heads * units * bases.width)) {}
};

inline std::int64_t blocks_of(const LavoSizes& sizes) {
  const MemoryBlocks blocks(sizes, sizes.length);
  std::int64_t count = 0;
  for (std::int64_t t = 0; t < sizes.length; t += blocks.tokens(t, sizes.length)) ++count;
  return count;
}

/// What one worker holds.
template <class R>
struct MemoryGradientScratch {
  R *query, *tokens, *upstream, *product;  // [memory_tokens, width]
  R *logits, *means, *d_mean, *read;       // [memory_tokens, rows]
  R *mean, *later, *inside, *spread;       // [rows]
  R *sum, *back;                           // [width]
  R* kept;                                 // [blocks, rows]: the mean before each
  std::int64_t* counts;                    // [blocks]

  MemoryGradientScratch(Workspace& space, const LavoSizes& sizes, const PackedBases<R>& bases) {
    for (R** each : {&query, &tokens, &upstream, &product}) {
      *each = space.take<R>(memory_tokens * bases.width);
    }
    for (R** each : {&logits, &means, &d_mean, &read}) {
      *each = space.take<R>(memory_tokens * bases.rows);
    }
    for (R** each : {&mean, &later, &inside, &spread}) *each = space.take<R>(bases.rows);
    for (R** each : {&sum, &back}) *each = space.take<R>(bases.width);
    kept = space.take<R>(blocks_of(sizes) * bases.rows);
    counts = space.take<std::int64_t>(blocks_of(sizes));
  }
};

/// The gradients through one row of what is read. In: c in powers of two, dm. Out: c holds dc, dm
/// holds du, m what is read.
template <class R, int Bytes>
ATTNBENCH_INLINE void differentiate_read(R* c, R* dm, const R* u, R* m, const R* fence,
                                         std::int64_t rows) {
  using S = Simd<R, Bytes>;
  auto most = S::broadcast(-std::numeric_limits<R>::infinity());
  for (std::int64_t j = 0; j < rows; j += S::lanes) {
    const auto logit = S::load(c + j) * S::load(u + j) + S::load(fence + j);
    S::store(m + j, logit);
    most = S::max(most, logit);
  }
  const R base = S::greatest(most);
  auto total = S::broadcast(0);
  auto weighted = S::broadcast(0);
  for (std::int64_t j = 0; j < rows; j += S::lanes) {
    const auto weight = S::exp2(S::load(m + j) - base);
    S::store(m + j, weight);
    total += weight;
    weighted += weight * S::load(dm + j) * S::load(u + j);
  }
  const R factor = R{1} / S::sum(total);
  const R delta = S::sum(weighted) * factor;
  constexpr auto natural = static_cast<R>(ln_of_2);
  for (std::int64_t j = 0; j < rows; j += S::lanes) {
    const auto a = S::load(m + j) * factor;
    const auto here = S::load(u + j);
    const auto grad = S::load(dm + j);
    const auto de = a * (grad * here - delta);
    const auto logit = S::load(c + j);
    S::store(c + j, natural * de * here);
    S::store(dm + j, grad * a + natural * de * logit);
    S::store(m + j, a * here);
  }
}

/// One head.
template <class T, int Bytes>
class MemoryGradient {
 public:
  using R = Compute<T>;
  using S = Simd<R, Bytes>;

  ATTNBENCH_INLINE MemoryGradient(const LavoSizes& sizes, const LavoArguments<T>& in,
                                  const LavoGradients<T>& out,
                                  const MemoryGradientShared<R>& shared,
                                  const MemoryGradientScratch<R>& scratch, std::int64_t b,
                                  std::int64_t h)
      : sizes_(sizes),
        in_(in),
        out_(out),
        s_(scratch),
        bases_(shared.bases),
        along_(shared.bases.along_of(h)),
        across_(shared.bases.across_of(h)),
        units_(shared.units),
        d_bases_(shared.d_bases + (b * sizes.heads + h) * shared.units * shared.bases.width),
        blocks_(sizes, sizes.length),
        b_(b),
        h_(h) {}

 protected:
  bool each() const { return sizes_.order == MemoryOrder::each_token; }
  bool windows() const { return sizes_.order == MemoryOrder::windows; }
  bool all() const { return sizes_.order == MemoryOrder::all; }
  const std::uint8_t* mask(std::int64_t t) const {
    return in_.key_mask == nullptr ? nullptr : in_.key_mask + b_ * in_.mask_stride + t;
  }
  ATTNBENCH_INLINE void load_tokens(std::int64_t t, std::int64_t count) const {
    load_memory_rows(in_.tokens.at(b_, h_, t), in_.tokens.row_stride, mask(t), count,
                     sizes_.head_dim, R{1}, s_.tokens, bases_.width);
  }

  /// s.d_mean becomes R of each token, where each token reads those up to it.
  ATTNBENCH_INLINE void run_back(std::int64_t t, std::int64_t count, std::int64_t before) const {
    std::int64_t seen = before + real_tokens(mask(t), count);
    for (std::int64_t i = count - 1; i >= 0; --i) {
      const bool real = mask(t) == nullptr || mask(t)[i] != 0;
      const R share = seen == 0 ? R{0} : R{1} / static_cast<R>(seen);
      R* const row = s_.d_mean + i * bases_.rows;
      for (std::int64_t j = 0; j < bases_.rows; j += S::lanes) {
        const auto total = S::load(s_.later + j) + share * S::load(row + j);
        S::store(s_.later + j, total);
        S::store(row + j, real ? total : S::broadcast(0));
      }
      if (real) --seen;
    }
  }

  /// s.back = B^T r.
  ATTNBENCH_INLINE void turn_back(const R* r) const {
    for (std::int64_t d = 0; d < bases_.width; d += S::lanes) {
      auto total = S::broadcast(0);
      for (std::int64_t j = 0; j < sizes_.bases; ++j) {
        total += r[j] * S::load(across_ + j * bases_.width + d);
      }
      S::store(s_.back + d, total);
    }
  }

  /// d_bases += r sum^T.
  ATTNBENCH_INLINE void add_outer(const R* r, const R* sum) const {
    for (std::int64_t j = 0; j < sizes_.bases; ++j) {
      R* const row = d_bases_ + j * bases_.width;
      for (std::int64_t d = 0; d < bases_.width; d += S::lanes) {
        S::store(row + d, S::load(row + d) + r[j] * S::load(sum + d));
      }
    }
  }

  /// d_bases += left^T right, of `count` rows each.
  ATTNBENCH_INLINE void add_products(const R* left, const R* right, std::int64_t count) const {
    multiply<R, Bytes, true>(units_, bases_.width, count, {left, 1, bases_.rows}, right,
                             bases_.width, d_bases_, bases_.width);
  }

  /// The gradient of tokens: `from` [count, width] or, with a stride of 0, the same for all that
  /// are real; and their share of the upstream where they are averaged with what is read.
  ATTNBENCH_INLINE void store_tokens(const R* from, std::int64_t stride, std::int64_t t,
                                     std::int64_t count, R own) const {
    for (std::int64_t i = 0; i < count; ++i) {
      T* const to = out_.d_tokens.at(b_, h_, t + i);
      const bool real = mask(t) == nullptr || mask(t)[i] != 0;
      for (std::int64_t d = 0; d < sizes_.head_dim; ++d) {
        R value = real ? from[i * stride + d] : R{0};
        if (sizes_.averaged) value += own * widen(out_.d_out.at(b_, h_, t + i)[d]);
        narrow(value, to[d]);
      }
    }
  }

  const LavoSizes& sizes_;
  const LavoArguments<T>& in_;
  const LavoGradients<T>& out_;
  const MemoryGradientScratch<R>& s_;
  const PackedBases<R>& bases_;
  const R *along_, *across_;
  const std::int64_t units_;
  R* const d_bases_;
  const MemoryBlocks blocks_;
  const std::int64_t b_, h_;
};

}  // namespace attnbench::kernels
