// What the forward and backward passes of the tiled softmax share: packing, and which pairs of a
// tile are seen.
#pragma once

#include <algorithm>
#include <limits>

#include "attention/kernels/cpu/product/multiply.hpp"
#include "attention/kernels/cpu/simd/stored.hpp"
#include "attention/kernels/softmax.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

/// Tokens that lie along the lanes of a score tile: three of the widest vectors of floats. With 8
/// rows of each vector they fill 24 of the 32 registers, which hides the latency of the sums.
constexpr std::int64_t panel = 48;

/// Up to this many queries of a head are taken one by one.
constexpr std::int64_t few_queries = 8;

/// `count` rounded up to a multiple of `unit`.
constexpr std::int64_t rounded(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// A half-open range of places.
struct Range {
  std::int64_t begin, end;
  bool empty() const { return begin >= end; }
};

/// The keys that any of `rows` queries from t0 on sees.
inline Range seen_keys(const SoftmaxSizes& sizes, std::int64_t t0, std::int64_t rows) {
  return {sizes.first_key(t0), sizes.last_key(t0 + rows - 1) + 1};
}

/// The queries that see key s.
inline Range seeing_queries(const SoftmaxSizes& sizes, std::int64_t s) {
  const std::int64_t opposite = s - sizes.offset;  // the query that sits on it
  return {std::max<std::int64_t>(0, opposite - sizes.right),
          std::min(sizes.length, opposite + sizes.left + 1)};
}

/// The part of `range` that lies in `count` places from `first` on, counted from there.
inline Range within(const Range& range, std::int64_t first, std::int64_t count) {
  return {std::clamp<std::int64_t>(range.begin - first, 0, count),
          std::clamp<std::int64_t>(range.end - first, 0, count)};
}

/// `count` rows of `width` numbers, rows padded with zeros to `stride`.
template <class T>
ATTNBENCH_INLINE void pack(const T* from, std::int64_t row_stride, std::int64_t count,
                           std::int64_t width, Compute<T>* to, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T* row = from + i * row_stride;
    for (std::int64_t d = 0; d < width; ++d) to[i * stride + d] = widen(row[d]);
    for (std::int64_t d = width; d < stride; ++d) to[i * stride + d] = 0;
  }
}

/// Whether rows can be multiplied where they lie: one after the other, in whole vectors.
template <class T>
bool lies_packed(const T* data, std::int64_t row_stride, std::int64_t width) {
  return std::is_same_v<T, Compute<T>> && row_stride == width &&
         padded(width, sizeof(T)) == width && reinterpret_cast<std::uintptr_t>(data) % 64 == 0;
}

}  // namespace attnbench::kernels
