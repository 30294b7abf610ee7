// Fetching ahead where what comes next is a few dense areas: evenly, while groups of keys are
// taken.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/product/prefetch.hpp"

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
                        (step + Prefetch::line - 1) / Prefetch::line * Prefetch::line};
  }
  /// Adds `count` rows of head h from t on, where they lie one behind the other.
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
      for (std::int64_t at = group * area.step; at < end; at += Prefetch::line) {
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

/// The same on the way of products that have room for it: they run over `numbers` numbers in all at
/// least.
class MemoryOnTheWay {
 public:
  explicit MemoryOnTheWay(std::int64_t numbers)
      : fetches_(std::max<std::int64_t>(1, numbers / NextLines::interval)) {}
  /// As for NextMemory.
  template <class T>
  void add(const T* rows, std::int64_t count, std::int64_t width) {
    if (count <= 0) return;
    const std::int64_t bytes = count * width * static_cast<std::int64_t>(sizeof(T));
    areas_[count_++] = {reinterpret_cast<std::uintptr_t>(rows), bytes};
    all_ += bytes;
    step_ = (all_ + fetches_ - 1) / fetches_;
  }
  template <class T>
  void add(const Rows<T>& rows, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t count,
           std::int64_t width) {
    if (rows.row_stride == width) add(rows.at(b, h, t), count, width);
  }
  /// What falls to a product over k numbers; `idle` over and over where nothing is left.
  ATTNBENCH_INLINE NextLines next(std::int64_t k, const void* idle) {
    if (area_ == count_) return {reinterpret_cast<std::uintptr_t>(idle), 0};
    const NextLines lines{areas_[area_].from + static_cast<std::uintptr_t>(offset_),
                          static_cast<std::uintptr_t>(step_)};
    offset_ += k / NextLines::interval * step_;
    if (offset_ >= areas_[area_].bytes) {
      ++area_;
      offset_ = 0;
    }
    return lines;
  }

 private:
  struct Area {
    std::uintptr_t from;
    std::int64_t bytes;
  };
  Area areas_[3];
  int count_ = 0, area_ = 0;
  std::int64_t fetches_, all_ = 0, step_ = 0, offset_ = 0;
};

}  // namespace attnbench::kernels
