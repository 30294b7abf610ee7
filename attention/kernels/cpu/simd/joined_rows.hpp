// Sums and greatest numbers across the lanes of many vectors at once: by halves, two vectors
// becoming one, which takes half the shuffles of turning rows into columns.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/simd/simd.hpp"

namespace attnbench::kernels {

/// Lane i of the result joins the lanes of rows[i]; `join` takes two vectors to one, in any order.
/// Count rows are left, with lanes / Count numbers of each beside those of the others.
template <class S, int Count = S::lanes, class Join>
ATTNBENCH_INLINE typename S::Vector joined(const typename S::Vector (&rows)[Count],
                                           const Join& join) {
  if constexpr (Count == 1) {
    return rows[0];
  } else {
    constexpr auto all_lanes = std::make_index_sequence<S::lanes>{};
    constexpr int half = Count / 2;
    typename S::Vector next[half];
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) {
      next[i] = join(S::template interleave<0>(rows[i], rows[i + half], all_lanes),
                     S::template interleave<1>(rows[i], rows[i + half], all_lanes));
    }
    return joined<S, half>(next, join);
  }
}

/// Lane i is the sum of the lanes of rows[i].
template <class S>
ATTNBENCH_INLINE typename S::Vector summed(const typename S::Vector (&rows)[S::lanes]) {
  using Vector = typename S::Vector;
  return joined<S>(rows, [](Vector a, Vector b) ATTNBENCH_INLINE_LAMBDA { return a + b; });
}

/// Joins `count` rows of one vector each.
template <class R, int Bytes, class Join>
ATTNBENCH_INLINE void join_rows(const R* rows, std::int64_t count, R* to, const Join& join) {
  using S = Simd<R, Bytes>;
  for (std::int64_t i = 0; i < count; i += S::lanes) {
    typename S::Vector block[S::lanes];
    const std::int64_t last = count - 1 - i;
#pragma GCC unroll 16
    for (std::int64_t j = 0; j < S::lanes; ++j) {
      block[j] = S::load(rows + (i + std::min(j, last)) * S::lanes);
    }
    const auto result = joined<S>(block, join);
    if (last + 1 >= S::lanes) {
      S::store(to + i, result);
    } else {
      for (std::int64_t j = 0; j <= last; ++j) to[i + j] = result[j];
    }
  }
}

template <class R, int Bytes>
ATTNBENCH_INLINE void sum_rows(const R* rows, std::int64_t count, R* sums) {
  using Vector = typename Simd<R, Bytes>::Vector;
  join_rows<R, Bytes>(rows, count, sums,
                      [](Vector a, Vector b) ATTNBENCH_INLINE_LAMBDA { return a + b; });
}

template <class R, int Bytes>
ATTNBENCH_INLINE void greatest_of_rows(const R* rows, std::int64_t count, R* greatest) {
  using S = Simd<R, Bytes>;
  using Vector = typename S::Vector;
  join_rows<R, Bytes>(rows, count, greatest,
                      [](Vector a, Vector b) ATTNBENCH_INLINE_LAMBDA { return S::max(a, b); });
}

}  // namespace attnbench::kernels
