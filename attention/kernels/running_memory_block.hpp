// One block of tokens of the running memory, as its forward and backward passes see it.
#pragma once

#include <algorithm>
#include <limits>

#include "attention/kernels/block_units.hpp"
#include "attention/kernels/running_memory.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

/// Tokens of one block; none crosses the border of a window.
constexpr std::int64_t memory_tokens = 64;

/// The bases of all heads as products want them.
template <class R>
struct PackedBases {
  std::int64_t rows, width;  ///< bases and head_dim, padded
  std::int64_t dim, count;   ///< head_dim and bases
  R* along;                  ///< [heads, head_dim, rows]: columns are bases
  R* across;                 ///< [heads, bases, width]: rows are
  R* fence;                  ///< [rows]: 0, and -infinity past the last basis

  PackedBases(Workspace& space, const RunningMemorySizes& sizes)
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
  template <class T>
  void pack(const Rows<const T>& bases, std::int64_t heads) const {
    set_fence();
    std::fill_n(along, heads * dim * rows, R{0});
    std::fill_n(across, heads * count * width, R{0});
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t j = 0; j < count; ++j) {
        const T* const from = bases.at(0, h, j);
        for (std::int64_t d = 0; d < dim; ++d) {
          const R value = widen(from[d]);
          along[(h * dim + d) * rows + j] = value;
          across[(h * count + j) * width + d] = value;
        }
      }
    }
  }
};

/// Where the tokens of a head are cut: into windows, and into blocks within them.
struct MemoryBlocks {
  std::int64_t window, phase;  ///< a window that never ends where there is none
  std::int64_t length;

  MemoryBlocks(const RunningMemorySizes& sizes, std::int64_t tokens)
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

/// Adds `count` rows, `stride` apart, to `sum`.
template <class R, int Bytes>
ATTNBENCH_INLINE void add_rows(const R* rows, std::int64_t stride, std::int64_t count,
                               std::int64_t width, R* sum) {
  using S = Simd<R, Bytes>;
  for (std::int64_t d = 0; d < width; d += S::lanes) {
    auto total = S::load(sum + d);
    for (std::int64_t i = 0; i < count; ++i) total += S::load(rows + i * stride + d);
    S::store(sum + d, total);
  }
}

/// A mean's coordinates, and of how many tokens.
template <class R>
struct RunningMean {
  R* u;  ///< [rows]
  std::int64_t count;

  /// Takes in `tokens` tokens whose sum is `sum` [width].
  template <int Bytes>
  ATTNBENCH_INLINE void take(const R* sum, std::int64_t tokens, const R* along, std::int64_t dim,
                             std::int64_t rows) {
    using S = Simd<R, Bytes>;
    const auto total_of = [&](std::int64_t j) ATTNBENCH_INLINE_LAMBDA {
      auto total = S::all(0);
      for (std::int64_t d = 0; d < dim; ++d) total += sum[d] * S::load(along + d * rows + j);
      return total;
    };
    take_totals<Bytes>(total_of, tokens, rows);
  }
  /// The same of the sum's coordinates, which `total_of(j)` gives a vector at a time.
  template <int Bytes, class TotalOf>
  ATTNBENCH_INLINE void take_totals(const TotalOf& total_of, std::int64_t tokens,
                                    std::int64_t rows) {
    using S = Simd<R, Bytes>;
    if (tokens == 0) return;
    const R before = static_cast<R>(tokens);
    const R share = R{1} / static_cast<R>(count + tokens);
    for (std::int64_t j = 0; j < rows; j += S::lanes) {
      const auto mean = S::load(u + j);
      S::store(u + j, mean + (total_of(j) - before * mean) * share);
    }
    count += tokens;
  }

  /// Of coordinates h [tokens, rows], each becomes the mean after its token.
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
