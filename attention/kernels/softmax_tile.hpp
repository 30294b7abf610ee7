// What the forward and backward passes of the tiled softmax share: packing, scores, masks.
#pragma once

#include <algorithm>
#include <limits>

#include "attention/kernels/multiply.hpp"
#include "attention/kernels/softmax.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

constexpr std::int64_t query_tile = 64;  ///< rows of one score tile

/// Keys of one tile: wide tiles cost work past the diagonal, narrow ones packing.
inline std::int64_t key_tile(const SoftmaxSizes& sizes) {
  const std::int64_t seen = std::min(sizes.key_length, sizes.left + sizes.right + query_tile);
  return seen <= 512 ? 64 : 128;
}

/// `count` rows of `width` numbers, times `factor`, rows padded with zeros to `stride`.
template <class T>
ATTNBENCH_INLINE void pack(const T* from, std::int64_t row_stride, std::int64_t count,
                           std::int64_t width, Compute<T> factor, Compute<T>* to,
                           std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T* row = from + i * row_stride;
    for (std::int64_t d = 0; d < width; ++d) to[i * stride + d] = factor * widen(row[d]);
    for (std::int64_t d = width; d < stride; ++d) to[i * stride + d] = 0;
  }
}

/// The transpose of `count` rows of `width` numbers: `width` rows of `stride`, padded with zeros.
template <class T>
ATTNBENCH_INLINE void pack_transposed(const T* from, std::int64_t row_stride, std::int64_t count,
                                      std::int64_t width, Compute<T>* to, std::int64_t stride) {
  // A few columns at a time, so that both sides stay in the first cache.
  constexpr std::int64_t columns = 8;
  for (std::int64_t d0 = 0; d0 < width; d0 += columns) {
    const std::int64_t d1 = std::min(width, d0 + columns);
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t d = d0; d < d1; ++d) to[d * stride + i] = widen(from[i * row_stride + d]);
    }
  }
  for (std::int64_t d = 0; d < width; ++d) {
    for (std::int64_t i = count; i < stride; ++i) to[d * stride + i] = 0;
  }
}

/// Minus infinity where query row i (token t0 + i) does not see key column j (token s0 + j). By
/// selection: a product with 0 would turn infinities into NaN.
template <class R>
ATTNBENCH_INLINE void hide(const SoftmaxSizes& sizes, const std::uint8_t* mask, std::int64_t t0,
                           std::int64_t rows, std::int64_t s0, std::int64_t columns, R* scores) {
  constexpr R hidden = -std::numeric_limits<R>::infinity();
  const bool inside =
      sizes.first_key(t0 + rows - 1) <= s0 && sizes.last_key(t0) >= s0 + columns - 1;
  if (inside && mask == nullptr) return;
  for (std::int64_t i = 0; i < rows; ++i) {
    R* row = scores + i * columns;
    const std::int64_t begin = std::clamp<std::int64_t>(sizes.first_key(t0 + i) - s0, 0, columns);
    const std::int64_t end =
        std::clamp<std::int64_t>(sizes.last_key(t0 + i) + 1 - s0, begin, columns);
    for (std::int64_t j = 0; j < begin; ++j) row[j] = hidden;
    if (mask != nullptr) {
      for (std::int64_t j = begin; j < end; ++j) row[j] = mask[s0 + j] != 0 ? row[j] : hidden;
    }
    for (std::int64_t j = end; j < columns; ++j) row[j] = hidden;
  }
}

inline std::int64_t rounded_rows(std::int64_t rows) {
  return (rows + row_unit - 1) / row_unit * row_unit;
}

}  // namespace attnbench::kernels
