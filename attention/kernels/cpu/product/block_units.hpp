// Rows of a block of tokens as left sides of products, in whole units, and back.
#pragma once

#include <algorithm>
#include <limits>

#include "attention/kernels/cpu/product/block_rows.hpp"
#include "attention/kernels/cpu/product/multiply.hpp"
#include "attention/kernels/cpu/simd/joined_rows.hpp"
#include "attention/kernels/cpu/simd/stored.hpp"

namespace attnbench::kernels {

inline std::int64_t whole_units(std::int64_t rows) {
  return (rows + row_unit - 1) / row_unit * row_unit;
}

/// The rows at `place` in whole units, zeros past the last; 0 for a hidden one, whatever stands
/// there. In place where they are whole already, else in `room` [whole_units(tokens), stride].
template <class T, int Bytes>
ATTNBENCH_INLINE Operand<Compute<T>> open_units(const Rows<const T>& rows, const std::uint8_t* mask,
                                                const BlockPlace& place, std::int64_t width,
                                                Compute<T>* room, std::int64_t stride) {
  using R = Compute<T>;
  const std::int64_t units = whole_units(place.tokens);
  if (units == place.tokens) {
    return open_rows<T, Bytes>(rows, mask, place, width, R{1}, R{0}, room, stride);
  }
  for (std::int64_t t = 0; t < place.tokens; ++t) {
    if (mask != nullptr && mask[place.t0 + t] == 0) {
      std::fill_n(room + t * stride, stride, R{0});
    } else {
      widen_row<T, Bytes>(rows.at(place.b, place.h, place.t0 + t), width, R{1}, room + t * stride,
                          stride, R{0});
    }
  }
  std::fill_n(room + place.tokens * stride, (units - place.tokens) * stride, R{0});
  return {room, stride, 1};
}

/// Rows times `factor`, to `place`.
template <class T, int Bytes>
ATTNBENCH_INLINE void put_rows(const Compute<T>* from, std::int64_t stride, std::int64_t count,
                               Compute<T> factor, const Rows<T>& to, const BlockPlace& place) {
  using S = Simd<Compute<T>, Bytes>;
  for (std::int64_t t = 0; t < place.tokens; ++t, from += stride) {
    T* const row = to.at(place.b, place.h, place.t0 + t);
    std::int64_t i = 0;
    for (; i + S::lanes <= count; i += S::lanes) {
      Stored<T, Bytes>::store(row + i, factor * S::load(from + i));
    }
    if (i < count) store_part<T, Bytes>(row + i, factor * S::load(from + i), count - i);
  }
}

/// The greatest number of each of `count` rows of one vector, 0 where that is -infinity: a query
/// that sees nothing must not compute infinity minus infinity. `count` is in whole vectors.
template <class R, int Bytes>
ATTNBENCH_INLINE void find_tops(const R* rows, std::int64_t count, R* tops) {
  using S = Simd<R, Bytes>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  greatest_of_rows<R, Bytes>(rows, count, tops);
  for (std::int64_t t = 0; t < count; t += S::lanes) {
    const auto top = S::load(tops + t);
    S::store(tops + t, top == none ? S::broadcast(0) : top);
  }
}

}  // namespace attnbench::kernels
