// One block of tokens of the running memory, as its forward and backward passes see it.
#pragma once

#include <algorithm>
#include <limits>

#include "attention/kernels/cpu/product/block_units.hpp"
#include "attention/kernels/lavo.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

/// Tokens of one block; none crosses the border of a window.
constexpr std::int64_t memory_tokens = 64;

/// Adds `count` rows, `stride` apart, each times its weight where there are weights, to `sum`. In
/// many chains: one addition would wait for another.
template <class R, int Bytes>
ATTNBENCH_INLINE void add_rows(const R* rows, std::int64_t stride, std::int64_t count,
                               std::int64_t width, R* sum, const R* weights = nullptr) {
  using S = Simd<R, Bytes>;
  in_runs<4>(width / S::lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
    constexpr int N = decltype(vectors)::value;
    R* const to = sum + first * S::lanes;
    const R* row = rows + first * S::lanes;
    typename S::Vector totals[2][N] = {};
    const auto add = [&](std::int64_t i, typename S::Vector(&total)[N]) ATTNBENCH_INLINE_LAMBDA {
      const R weight = weights == nullptr ? R{1} : weights[i];
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) total[v] += weight * S::load(row + v * S::lanes);
      row += stride;
    };
    std::int64_t i = 0;
    for (; i + 2 <= count; i += 2) {
      add(i, totals[0]);
      add(i + 1, totals[1]);
    }
    if (i < count) add(i, totals[0]);
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      S::store(to + v * S::lanes, S::load(to + v * S::lanes) + (totals[0][v] + totals[1][v]));
    }
  });
}

/// The bases of all heads as products want them.
template <class R>
struct PackedBases {
  std::int64_t rows, width;  ///< bases and head_dim, padded
  std::int64_t dim, count;   ///< head_dim and bases
  R* along;                  ///< [heads, head_dim, rows]: columns are bases
  R* across;                 ///< [heads, bases, width]: rows are
  R* fence;                  ///< [rows]: 0, and -infinity past the last basis

  PackedBases(Workspace& space, const LavoSizes& sizes)
      : rows(padded(sizes.bases, sizeof(R))),
        width(padded(sizes.head_dim, sizeof(R))),
        dim(sizes.head_dim),
        count(sizes.bases),
        along(space.take<R>(sizes.heads * dim * rows)),
        across(space.take<R>(sizes.heads * count * width)),
        fence(space.take<R>(rows)) {}

  const R* along_of(std::int64_t h) const { return along + h * dim * rows; }
  const R* across_of(std::int64_t h) const { return across + h * count * width; }

  void set_fence() const {
    std::fill_n(fence, rows, -std::numeric_limits<R>::infinity());
    std::fill_n(fence, count, R{0});
  }
  /// Packs the bases of head h.
  template <class T, int Bytes>
  ATTNBENCH_INLINE void pack(const Rows<const T>& bases, std::int64_t h) const {
    const T* const from = bases.at(0, h, 0);
    pack_transposed<T, Bytes>(from, bases.row_stride, count, dim, R{1}, along + h * dim * rows,
                              rows);
    for (std::int64_t j = 0; j < count; ++j) {
      widen_row<T, Bytes>(from + j * bases.row_stride, dim, R{1}, across + (h * count + j) * width,
                          width, R{0});
    }
  }

  /// to [rows] = B x.
  template <int Bytes>
  ATTNBENCH_INLINE void project(std::int64_t h, const R* x, R* to) const {
    std::fill_n(to, rows, R{0});
    add_rows<R, Bytes>(along_of(h), rows, dim, rows, to, x);
  }
};

/// Where the tokens of a head are cut: into windows, and into blocks within them.
struct MemoryBlocks {
  std::int64_t window, phase;  ///< a window that never ends where there is none
  std::int64_t length;

  MemoryBlocks(const LavoSizes& sizes, std::int64_t tokens)
      : window(sizes.order == MemoryOrder::windows ? sizes.window : std::int64_t{1} << 40),
        phase(sizes.order == MemoryOrder::windows ? sizes.phase : 0),
        length(tokens) {}
  /// The block that begins at t, where none reaches past `end`.
  std::int64_t tokens(std::int64_t t, std::int64_t end) const {
    return std::min({memory_tokens, end - t, window - (phase + t) % window});
  }
  /// Whether the window of the token before t ends there.
  bool ends(std::int64_t t) const { return (phase + t) % window == 0; }
  bool begins(std::int64_t t) const { return (phase + t) % window == 0; }
};

/// `count` rows of numbers times `factor`, padded with zeros to whole vectors and whole units of
/// rows; 0 for a hidden one, whatever stands there. `mask` is that of the first row, or null.
template <class T>
ATTNBENCH_INLINE void load_memory_rows(const T* from, std::int64_t row_stride,
                                       const std::uint8_t* mask, std::int64_t count,
                                       std::int64_t dim, Compute<T> factor, Compute<T>* to,
                                       std::int64_t width) {
  using R = Compute<T>;
  for (std::int64_t i = 0; i < count; ++i) {
    R* const row = to + i * width;
    if (mask != nullptr && mask[i] == 0) {
      std::fill_n(row, width, R{0});
      continue;
    }
    const T* const given = from + i * row_stride;
    for (std::int64_t d = 0; d < dim; ++d) row[d] = factor * widen(given[d]);
    for (std::int64_t d = dim; d < width; ++d) row[d] = 0;
  }
  std::fill_n(to + count * width, (whole_units(count) - count) * width, R{0});
}

inline std::int64_t real_tokens(const std::uint8_t* mask, std::int64_t count) {
  if (mask == nullptr) return count;
  std::int64_t real = 0;
  for (std::int64_t i = 0; i < count; ++i) real += mask[i] != 0 ? 1 : 0;
  return real;
}

/// A mean's coordinates, and of how many tokens.
template <class R>
struct RunningMean {
  R* u;  ///< [rows]
  std::int64_t count;

  /// Takes in `tokens` tokens whose sum has the coordinates `totals` [rows].
  template <int Bytes>
  ATTNBENCH_INLINE void take(const R* totals, std::int64_t tokens, std::int64_t rows) {
    using S = Simd<R, Bytes>;
    if (tokens == 0) return;
    const R before = static_cast<R>(tokens);
    const R share = R{1} / static_cast<R>(count + tokens);
    for (std::int64_t j = 0; j < rows; j += S::lanes) {
      const auto mean = S::load(u + j);
      S::store(u + j, mean + (S::load(totals + j) - before * mean) * share);
    }
    count += tokens;
  }

  /// Each of the coordinates h [tokens, rows] becomes the mean after its token.
  template <int Bytes>
  ATTNBENCH_INLINE void run(R* h, const std::uint8_t* mask, std::int64_t tokens,
                            std::int64_t rows) {
    using S = Simd<R, Bytes>;
    for (std::int64_t i = 0; i < tokens; ++i) {
      const bool real = mask == nullptr || mask[i] != 0;
      if (real) ++count;
      const R share = real ? R{1} / static_cast<R>(count) : R{0};
      for (std::int64_t j = 0; j < rows; j += S::lanes) {
        const auto mean = S::load(u + j);
        const auto next = mean + (S::load(h + i * rows + j) - mean) * share;
        S::store(u + j, next);
        S::store(h + i * rows + j, next);
      }
    }
  }
};

}  // namespace attnbench::kernels
