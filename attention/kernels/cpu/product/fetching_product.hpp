// Products of matrices that fit the cache, one after the other: what the next block reads is
// fetched on the way, and results go where they belong.
#pragma once

#include "attention/kernels/cpu/product/multiply.hpp"
#include "attention/kernels/cpu/product/prefetch.hpp"

namespace attnbench::kernels {

/// Rows that come next, fetched evenly over the tiles of a block's products: memory that is asked
/// for too much at once holds the products up.
class SpreadPrefetch {
 public:
  explicit SpreadPrefetch(std::int64_t tokens) : tokens_(tokens), lines_(tokens) {}
  template <class T>
  void add(const Rows<T>& rows, std::int64_t b, std::int64_t h, std::int64_t t,
           std::int64_t width) {
    lines_.add(rows, b, h, t, width);
    columns_ +=
        (width * static_cast<std::int64_t>(sizeof(T)) + Prefetch::line - 1) / Prefetch::line;
  }
  /// There will be so many tiles at least.
  void spread(std::int64_t tiles) { halves_ = 2 * columns_ <= tiles; }
  /// What a tile fetches in two steps: the lines at `from` and `second` bytes after it, and then
  /// `step` bytes further; `idle` where there is nothing left.
  struct Lines {
    std::uintptr_t from, second, step;
  };
  Lines next(const void* idle) {
    if (!halves_ || !half_done_) column_ = lines_.next(idle);
    const auto step = static_cast<std::uintptr_t>(column_.step);
    Lines mine{column_.from, halves_ ? 0 : step, halves_ ? step : 2 * step};
    if (halves_ && half_done_) mine.from += static_cast<std::uintptr_t>(tokens_ / 2) * step;
    half_done_ = !half_done_;
    return mine;
  }

 private:
  std::int64_t tokens_;
  Prefetch lines_;
  std::int64_t columns_ = 0;
  bool halves_ = false, half_done_ = false;
  Prefetch::Column column_{};
};

/// to = (decays from + a b) factors: m x n numbers, m in whole units of rows, n in whole vectors.
template <class R>
struct FetchingProduct {
  std::int64_t m, n, k;
  Left<R> a;
  const R* b;
  std::int64_t b_stride;
  const R* from;  ///< null: zeros
  std::int64_t from_stride;
  R* to;
  std::int64_t to_stride;
  const R* decays = nullptr;   ///< [m], or null: ones
  const R* factors = nullptr;  ///< [m], or null: ones

  /// Tiles that a product of that size takes at least.
  static std::int64_t tiles(std::int64_t m, std::int64_t n) {
    constexpr std::int64_t columns = 4 * 64 / static_cast<std::int64_t>(sizeof(R));
    return (m + 5) / 6 * ((n + columns - 1) / columns);
  }
  /// For float and double, vectors of 16, 32 and 64 bytes.
  template <int Bytes>
  void run(SpreadPrefetch& prefetch) const;
};

}  // namespace attnbench::kernels
