// One token of the running memory, as when it is decoded: to pack the bases as products want them
// would be most of the work, so they are read as they lie, twice. To read them from memory is most
// of what is left, so the next head's are fetched while one head is computed.
#pragma once

#include "attention/kernels/cpu/lavo/lavo_parts.hpp"
#include "attention/kernels/cpu/product/prefetch.hpp"
#include "attention/kernels/cpu/simd/joined_rows.hpp"
#include "attention/kernels/cpu/simd/stored.hpp"

namespace attnbench::kernels {

/// The bases of the head that comes next, fetched a few lines at a time; of none where that is
/// unknown.
class NextBases {
 public:
  NextBases() = default;
  template <class T>
  NextBases(const LavoSizes& sizes, const Rows<const T>& bases, std::int64_t h)
      : line_(reinterpret_cast<std::uintptr_t>(bases.at(0, h, 0))),
        step_(bases.row_stride == sizes.head_dim ? Prefetch::line : 0) {}
  template <int Lines>
  ATTNBENCH_INLINE void fetch_some() {
#pragma GCC unroll 8
    for (int i = 0; i < Lines; ++i) fetch(line_ + static_cast<std::uintptr_t>(i) * step_);
    line_ += Lines * step_;
  }

 private:
  std::uintptr_t line_ = 0;
  std::uintptr_t step_ = 0;
};

/// A head's bases in rows of whole vectors; zeros past the last, up to whole vectors of bases.
template <class R>
struct BasisRows {
  const R* data;
  std::int64_t stride, count, width;  ///< count and width padded

  /// In place, or packed into `room` [count, width].
  template <class T, int Bytes>
  static ATTNBENCH_INLINE BasisRows of(const LavoSizes& sizes, const Rows<const T>& bases,
                                       std::int64_t h, R* room) {
    const std::int64_t count = padded(sizes.bases, sizeof(R));
    const std::int64_t width = padded(sizes.head_dim, sizeof(R));
    if constexpr (std::is_same_v<T, R>) {
      if (count == sizes.bases && width == sizes.head_dim) {
        return {bases.at(0, h, 0), bases.row_stride, count, width};
      }
    }
    std::fill_n(room, count * width, R{0});
    for (std::int64_t j = 0; j < sizes.bases; ++j) {
      widen_row<T, Bytes>(bases.at(0, h, j), sizes.head_dim, R{1}, room + j * width, width, R{0});
    }
    return {room, width, count, width};
  }

  /// to [count] = B x. Fetches that part of what comes next.
  template <int Bytes, int Part>
  ATTNBENCH_INLINE void project(const R* x, R* to, NextBases& next) const {
    using S = Simd<R, Bytes>;
    constexpr int lines = S::lanes * Bytes / static_cast<int>(Prefetch::line) / Part;
    for (std::int64_t j = 0; j < count; j += S::lanes) {
      const R* const rows = data + j * stride;
      typename S::Vector sums[S::lanes] = {};
      for (std::int64_t d = 0; d < width; d += S::lanes) {
        const auto numbers = S::load(x + d);
        next.fetch_some<lines>();
#pragma GCC unroll 16
        for (int i = 0; i < S::lanes; ++i) sums[i] += numbers * S::load(rows + i * stride + d);
      }
      S::store(to + j, summed<S>(sums));
    }
  }

  /// to [width] = B^T weights. Fetches half of what comes next.
  template <int Bytes>
  ATTNBENCH_INLINE void combine(const R* weights, R* to, NextBases& next) const {
    using S = Simd<R, Bytes>;
    in_runs<4>(width / S::lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
      constexpr int N = decltype(vectors)::value;
      typename S::Vector sums[2][N] = {};  // two, to hide the latency of the sums
      const R* row = data + first * S::lanes;
      for (std::int64_t j = 0; j < count; j += 2) {
        next.fetch_some<N * Bytes / static_cast<int>(Prefetch::line)>();
#pragma GCC unroll 2
        for (int i = 0; i < 2; ++i) {
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) {
            sums[i][v] += weights[j + i] * S::load(row + i * stride + v * S::lanes);
          }
        }
        row += 2 * stride;
      }
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) {
        S::store(to + (first + v) * S::lanes, sums[0][v] + sums[1][v]);
      }
    });
  }
};

/// a u with a = softmax(c u), in place of c; `fence` hides what is past the last basis.
template <class R, int Bytes>
ATTNBENCH_INLINE void read_row(R* c, const R* u, const R* fence, std::int64_t rows) {
  using S = Simd<R, Bytes>;
  auto most = S::broadcast(-std::numeric_limits<R>::infinity());
  for (std::int64_t j = 0; j < rows; j += S::lanes) {
    const auto logit = S::load(c + j) * S::load(u + j) + S::load(fence + j);
    S::store(c + j, logit);
    most = S::max(most, logit);
  }
  const R base = S::greatest(most);
  auto total = S::broadcast(0);
  for (std::int64_t j = 0; j < rows; j += S::lanes) {
    const auto weight = S::exp2(S::load(c + j) - base);
    S::store(c + j, weight * S::load(u + j));
    total += weight;
  }
  const R factor = R{1} / S::sum(total);
  for (std::int64_t j = 0; j < rows; j += S::lanes) S::store(c + j, S::load(c + j) * factor);
}

/// The only token of one head.
template <class T, int Bytes>
ATTNBENCH_INLINE void step_head(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                                std::int64_t b, std::int64_t h, NextBases next) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const auto& bases = call.shared.bases;
  const auto rows = BasisRows<R>::template of<T, Bytes>(sizes, call.in.bases, h, s.basis_rows);
  const bool each = sizes.order == MemoryOrder::each_token;
  const std::uint8_t* const mask = call.mask(b, 0);
  auto [count, begun] = begin_part<T, Bytes>(call, s, b, h, 0);
  RunningMean<R> mean{s.mean, count};
  widen_row<T, Bytes>(call.in.query.at(b, h, 0), sizes.head_dim,
                      static_cast<R>(sizes.scale * log2_of_e), s.query, bases.width, R{0});
  load_memory_rows(call.in.tokens.at(b, h, 0), call.in.tokens.row_stride, mask, 1, sizes.head_dim,
                   R{1}, s.tokens, bases.width);
  if (each) {
    rows.template project<Bytes, 4>(s.query, s.logits, next);
  } else {
    rows.template project<Bytes, 2>(s.query, s.logits, next);
  }
  const bool empty = mean.count == 0;
  if (each) {
    rows.template project<Bytes, 4>(s.tokens, s.means, next);
    mean.template run<Bytes>(s.means, mask, 1, bases.rows);
  }
  read_row<R, Bytes>(s.logits, s.mean, bases.fence, bases.rows);
  rows.template combine<Bytes>(s.logits, s.out, next);
  store_block(call, s, b, h, 0, 1, empty);
  if (!each) {
    add_rows<R, Bytes>(s.tokens, bases.width, 1, bases.width, s.sum);
    begun += real_tokens(mask, 1);
    if (MemoryBlocks(sizes, 1).ends(1)) {
      NextBases none;
      rows.template project<Bytes, 2>(s.sum, s.means, none);
      mean.template take<Bytes>(s.means, begun, bases.rows);
      std::fill_n(s.sum, bases.width, R{0});
      begun = 0;
    }
  }
  end_sequence(call, s, b, h, mean.count, begun);
}

/// Heads that one worker takes together, one after the other.
inline std::int64_t heads_together(const LavoSizes& sizes) {
  return std::clamp<std::int64_t>(sizes.batch * sizes.heads / 32, 1, 16);
}

/// Run k of all heads' only tokens.
template <class T, int Bytes>
ATTNBENCH_INLINE void step_heads(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                                 std::int64_t k) {
  const auto& sizes = call.sizes;
  const std::int64_t together = heads_together(sizes);
  const std::int64_t end = std::min((k + 1) * together, sizes.batch * sizes.heads);
  for (std::int64_t head = k * together; head < end; ++head) {
    const bool last = head + 1 == end;
    step_head<T, Bytes>(
        call, s, head / sizes.heads, head % sizes.heads,
        last ? NextBases() : NextBases(sizes, call.in.bases, (head + 1) % sizes.heads));
  }
}

}  // namespace attnbench::kernels
