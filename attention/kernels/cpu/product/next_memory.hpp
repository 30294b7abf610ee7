// Fetching ahead where what comes next is a few dense areas: evenly, while groups of keys are
// taken.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/product/ahead.hpp"

namespace attnbench::kernels {

/// Memory that comes next, called into the second cache with every group of keys: in order, as the
/// machine's own prefetcher likes it.
class NextMemory {
 public:
  explicit NextMemory(std::int64_t groups) : groups_(groups) {}
  /// `count` rows of `width` numbers that lie one after the other.
  template <class T>
  void add(const T* rows, std::int64_t count, std::int64_t width) {
    if (count <= 0) return;
    const std::int64_t bytes = count * width * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t step = (bytes + groups_ - 1) / groups_;
    areas_[count_++] = {reinterpret_cast<std::uintptr_t>(rows), bytes,
                        (step + Ahead::line - 1) / Ahead::line * Ahead::line};
  }
  /// Those of one head from t on, where they do.
  template <class T>
  void add(const Rows<T>& rows, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t count,
           std::int64_t width) {
    if (rows.row_stride == width) add(rows.at(b, h, t), count, width);
  }
  /// What falls to one group.
  ATTNBENCH_INLINE void fetch_of(std::int64_t group) const {
    for (int i = 0; i < count_; ++i) {
      const Area& area = areas_[i];
      const std::int64_t end = std::min(area.bytes, (group + 1) * area.step);
      for (std::int64_t at = group * area.step; at < end; at += Ahead::line) {
        fetch(area.from + static_cast<std::uintptr_t>(at));
      }
    }
  }

 private:
  struct Area {
    std::uintptr_t from;
    std::int64_t bytes, step;
  };
  Area areas_[4];
  int count_ = 0;
  std::int64_t groups_;
};

}  // namespace attnbench::kernels
