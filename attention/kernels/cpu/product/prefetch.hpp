// Fetching ahead: while a block is computed, the rows of the one after it are called into the
// second cache, a line of each at a time, so that streaming the inputs costs no time of its own.
#pragma once

#include <cstdint>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "attention/kernels/rows.hpp"

namespace attnbench::kernels {

/// The rows that come next, cut into columns of as many cache lines as a block has tokens: along
/// the rows where they lie side by side, as the machine's own prefetcher likes it; else across
/// them.
class Prefetch {
 public:
  static constexpr std::int64_t line = 64;
  explicit Prefetch(std::int64_t tokens) : tokens_(tokens) {}
  std::int64_t tokens() const { return tokens_; }
  /// Addresses are `from`, from + step, ...: one for each token of the block.
  struct Column {
    std::uintptr_t from;
    std::int64_t step;
  };

  /// Rows of `bytes` bytes from `first` on, `step` bytes apart.
  void add(const void* first, std::int64_t bytes, std::int64_t step) {
    areas_[count_++] = {reinterpret_cast<std::uintptr_t>(first), bytes, step};
  }
  template <class T>
  void add(const Rows<T>& rows, std::int64_t b, std::int64_t h, std::int64_t t,
           std::int64_t width) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    add(rows.at(b, h, t), width * size, rows.row_stride * size);
  }
  /// The next column; one that stays at `idle` when all have been given out.
  Column next(const void* idle) {
    while (area_ < count_ && offset_ >= areas_[area_].bytes) {
      ++area_;
      offset_ = 0;
    }
    if (area_ == count_) return {reinterpret_cast<std::uintptr_t>(idle), 0};
    const Area& area = areas_[area_];
    const bool dense = area.step == area.bytes;
    const Column column{
        area.first + static_cast<std::uintptr_t>(dense ? offset_ * tokens_ : offset_),
        dense ? line : area.step};
    offset_ += line;
    return column;
  }

 private:
  struct Area {
    std::uintptr_t first;
    std::int64_t bytes, step;
  };
  std::int64_t tokens_;
  Area areas_[8] = {};
  int count_ = 0;
  int area_ = 0;
  std::int64_t offset_ = 0;
};

/// Calls a line into the second cache. Any address will do: nothing is read.
ATTNBENCH_INLINE void fetch(std::uintptr_t address) {
  __builtin_prefetch(reinterpret_cast<const void*>(address), 0, 2);
}

/// What a product fetches on its way: with every second number that it sums over the line at
/// `from`, which moves on by `step` bytes.
struct NextLines {
  static constexpr std::int64_t interval = 2;
  std::uintptr_t from, step;
};
/// A product that fetches nothing.
struct NoLines {};

}  // namespace attnbench::kernels
