// C = A B and C += A B for matrices that fit the cache: the inner loop of the tiled kernels.
#pragma once

#include <cstdint>

#include "attention/kernels/cpu/product/prefetch.hpp"
#include "attention/kernels/cpu/simd/simd.hpp"

namespace attnbench::kernels {

/// An m x k matrix by strides: a transposed one is as good as a plain one, for its elements are
/// broadcast one at a time.
template <class R>
struct Left {
  const R* data;
  std::int64_t row_stride;
  std::int64_t column_stride;

  Left from(std::int64_t row, std::int64_t column) const {
    return {data + row * row_stride + column * column_stride, row_stride, column_stride};
  }
};

/// What the sums of a product start from: nothing, what C holds, row i of C times factor[i], or row
/// i of what begins i numbers before `factor`: diagonals are alike.
enum class Start { zero, kept, scaled, diagonal };

/// The matrices are padded: m to a multiple of `row_unit`, n to whole vectors.
constexpr std::int64_t row_unit = 8;

namespace detail {

/// M rows and N vectors of C, all in registers. Fetches `lines` meanwhile.
template <class R, int Bytes, int M, int N, Start start, class Lines = NoLines>
ATTNBENCH_INLINE void multiply_tile(std::int64_t k, Left<R> a, const R* b, std::int64_t b_stride,
                                    R* c, std::int64_t c_stride, const R* factor = nullptr,
                                    Lines lines = {}) {
  using S = Simd<R, Bytes>;
  typename S::Vector sums[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      const R* const from = start == Start::diagonal ? factor - i : c + i * c_stride;
      sums[i][j] = start == Start::zero ? S::broadcast(0) : S::load(from + j * S::lanes);
      if (start == Start::scaled) sums[i][j] *= factor[i];
    }
  }
  const auto add = [&](std::int64_t l) ATTNBENCH_INLINE_LAMBDA {
    typename S::Vector row[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) row[j] = S::load(b + l * b_stride + j * S::lanes);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const R x = a.data[i * a.row_stride + l * a.column_stride];
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) sums[i][j] += x * row[j];
    }
  };
  if constexpr (std::is_same_v<Lines, NoLines>) {
    for (std::int64_t l = 0; l < k; ++l) add(l);
  } else {
    std::int64_t l = 0;
    for (; l + NextLines::interval <= k; l += NextLines::interval) {
      add(l);
      fetch(lines.from);
      lines.from += lines.step;
      add(l + 1);
    }
    if (l < k) add(l);
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) S::store(c + i * c_stride + j * S::lanes, sums[i][j]);
  }
}

}  // namespace detail

/// `body(first, count)` for runs of `Most` vectors, then a shorter one, `count` being a constant.
/// Mark the body ATTNBENCH_INLINE_LAMBDA.
template <int Most, class Body>
ATTNBENCH_INLINE void in_runs(std::int64_t vectors, const Body& body, std::int64_t first = 0) {
  for (; first + Most <= vectors; first += Most) body(first, std::integral_constant<int, Most>{});
  if constexpr (Most > 1) in_runs<Most - 1>(vectors, body, first);
}

/// C (+)= A B with A m x k, B k x n and C m x n, rows of B and C apart by their strides. For float
/// and double, vectors of 16, 32 and 64 bytes.
template <class R, int Bytes, bool Add>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Left<R> a, const R* b,
              std::int64_t b_stride, R* c, std::int64_t c_stride);

}  // namespace attnbench::kernels
