// Vectors of numbers as they are stored: what kernels load and store where the element type is not
// the one they compute in.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "attention/kernels/rows.hpp"

namespace attnbench::kernels {

/// Vectors of Bytes of Compute<T>, from and to memory that holds T.
template <class T, int Bytes>
struct Stored {
  using S = Simd<T, Bytes>;
  static ATTNBENCH_INLINE typename S::Vector load(const T* from) { return S::load(from); }
  static ATTNBENCH_INLINE void store(T* to, typename S::Vector v) { S::store(to, v); }
};

template <int Bytes>
struct Stored<BFloat16, Bytes> {
  using S = Simd<float, Bytes>;
  using Wide = typename S::Integers;
  typedef std::uint16_t Narrow __attribute__((vector_size(Bytes / 2), may_alias));

  static ATTNBENCH_INLINE typename S::Vector load(const BFloat16* from) { return S::load(from); }
  /// To nearest, ties to even; NaN stays NaN.
  static ATTNBENCH_INLINE void store(BFloat16* to, typename S::Vector v) {
    const Wide bits = reinterpret_cast<const Wide&>(v);
    const auto number = v == v;  // NOLINT(misc-redundant-expression): not of NaN
    const Wide real = reinterpret_cast<const Wide&>(number);
    const Wide rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const Wide result = (rounded & real) | (~real & 0x7fc0u);
    const Narrow narrow = __builtin_convertvector(result, Narrow);
    std::memcpy(static_cast<void*>(to), &narrow, sizeof narrow);
  }
};

/// The first `count` lanes.
template <class T, int Bytes>
ATTNBENCH_INLINE void store_part(T* to, typename Simd<Compute<T>, Bytes>::Vector v,
                                 std::int64_t count) {
  constexpr int lanes = Simd<Compute<T>, Bytes>::lanes;
  if (count >= lanes) {
    Stored<T, Bytes>::store(to, v);
  } else {
    for (std::int64_t i = 0; i < count; ++i) narrow(v[i], to[i]);
  }
}

/// One of J vectors of columns of which `count` are left: more than one only where all are whole.
template <class T, int Bytes, int J>
ATTNBENCH_INLINE void store_columns(T* to, typename Simd<Compute<T>, Bytes>::Vector v,
                                    std::int64_t count) {
  if constexpr (J > 1) {
    Stored<T, Bytes>::store(to, v);
  } else {
    store_part<T, Bytes>(to, v, count);
  }
}

/// `count` numbers times `factor`, followed by `beyond` up to `stride`, a multiple of the lanes.
template <class T, int Bytes>
ATTNBENCH_INLINE void widen_row(const T* from, std::int64_t count, Compute<T> factor,
                                Compute<T>* to, std::int64_t stride, Compute<T> beyond) {
  using S = Simd<Compute<T>, Bytes>;
  std::int64_t i = 0;
  for (; i + S::lanes <= count; i += S::lanes) {
    S::store(to + i, factor * Stored<T, Bytes>::load(from + i));
  }
  for (; i < count; ++i) to[i] = factor * widen(from[i]);
  for (; i < stride; ++i) to[i] = beyond;
}

/// The transpose of `count` rows of `width` numbers, times `factor`: `width` rows of `stride`,
/// which is a multiple of whole vectors, filled up with zeros.
template <class T, int Bytes>
ATTNBENCH_INLINE void pack_transposed(const T* from, std::int64_t row_stride, std::int64_t count,
                                      std::int64_t width, Compute<T> factor, Compute<T>* to,
                                      std::int64_t stride) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  for (std::int64_t i0 = 0; i0 < stride; i0 += S::lanes) {
    const std::int64_t rows = std::clamp<std::int64_t>(count - i0, 0, S::lanes);
    for (std::int64_t d0 = 0; d0 < width; d0 += S::lanes) {
      const std::int64_t columns = std::min<std::int64_t>(width - d0, S::lanes);
      typename S::Vector block[S::lanes];
      if (rows == S::lanes && columns == S::lanes) {
#pragma GCC unroll 16
        for (int i = 0; i < S::lanes; ++i) {
          block[i] = S::load(from + (i0 + i) * row_stride + d0) * factor;
        }
        S::transpose(block);
#pragma GCC unroll 16
        for (int d = 0; d < S::lanes; ++d) S::store(to + (d0 + d) * stride + i0, block[d]);
        continue;
      }
      for (std::int64_t d = 0; d < columns; ++d) {
        R* const row = to + (d0 + d) * stride + i0;
        for (std::int64_t i = 0; i < rows; ++i) {
          row[i] = widen(from[(i0 + i) * row_stride + d0 + d]) * factor;
        }
        for (std::int64_t i = rows; i < S::lanes; ++i) row[i] = 0;
      }
    }
  }
}

}  // namespace attnbench::kernels
