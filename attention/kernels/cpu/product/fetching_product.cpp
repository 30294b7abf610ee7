#include "attention/kernels/cpu/product/fetching_product.hpp"

namespace attnbench::kernels {
namespace {

/// M rows and N vectors of a product from row i and column j on; `Across` where the numbers of one
/// column of a lie side by side.
template <class R, int Bytes, bool Across, int M, int N>
ATTNBENCH_INLINE void tile(const FetchingProduct<R>& p, std::int64_t i, std::int64_t j,
                           SpreadPrefetch& prefetch) {
  using S = Simd<R, Bytes>;
  typename S::Vector sums[M][N];
#pragma GCC unroll 8
  for (int r = 0; r < M; ++r) {
    const R decay = p.from == nullptr || p.decays == nullptr ? R{1} : p.decays[i + r];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      sums[r][v] = p.from == nullptr
                       ? S::broadcast(0)
                       : decay * S::load(p.from + (i + r) * p.from_stride + j + v * S::lanes);
    }
  }
  const std::int64_t row_stride = Across ? 1 : p.a.row_stride;
  const std::int64_t column_stride = p.a.column_stride, step = p.b_stride;
  const R* left = p.a.data + i * row_stride;
  const R* right = p.b + j;
  const auto add = [&]() ATTNBENCH_INLINE_LAMBDA {
    typename S::Vector row[N];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) row[v] = S::load(right + v * S::lanes);
#pragma GCC unroll 8
    for (int r = 0; r < M; ++r) {
      const R x = left[r * row_stride];
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) sums[r][v] += x * row[v];
    }
    left += column_stride;
    right += step;
  };
  SpreadPrefetch::Lines lines = prefetch.next(p.b);
  // By twos: what counts steps takes the units that multiply.
  for (std::int64_t pairs = p.k / 2; pairs > 0; --pairs) {
    add();
    fetch(lines.from);
    fetch(lines.from + lines.second);
    lines.from += lines.step;
    add();
  }
  if (p.k % 2 != 0) add();
#pragma GCC unroll 8
  for (int r = 0; r < M; ++r) {
    const R factor = p.factors == nullptr ? R{1} : p.factors[i + r];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      S::store(p.to + (i + r) * p.to_stride + j + v * S::lanes, factor * sums[r][v]);
    }
  }
}

template <class R, int Bytes, bool Across>
void run_as(const FetchingProduct<R>& given, SpreadPrefetch& prefetch) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    // As many sums as the registers hold: 32 of 64 bytes, 16 of the narrower kinds.
    constexpr int M = has_32_registers<Bytes> ? 6 : 4;
    constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
    const FetchingProduct<R> p = given;  // a store cannot change a copy
    in_runs<has_32_registers<Bytes> ? 4 : 2>(
        p.n / lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
          constexpr int N = decltype(vectors)::value;
          const std::int64_t j = first * lanes;
          std::int64_t i = 0;
          for (; i + M <= p.m; i += M) tile<R, Bytes, Across, M, N>(p, i, j, prefetch);
          if (i + 4 <= p.m) {
            tile<R, Bytes, Across, 4, N>(p, i, j, prefetch);
            i += 4;
          }
          if (i < p.m) tile<R, Bytes, Across, 2, N>(p, i, j, prefetch);
        });
  });
}

}  // namespace

template <class R>
template <int Bytes>
void FetchingProduct<R>::run(SpreadPrefetch& prefetch) const {
  if (a.row_stride == 1) {
    run_as<R, Bytes, true>(*this, prefetch);
  } else {
    run_as<R, Bytes, false>(*this, prefetch);
  }
}

#define ATTNBENCH_INSTANTIATE(R, BYTES) \
  template void FetchingProduct<R>::run<BYTES>(SpreadPrefetch&) const;
ATTNBENCH_FOR_REALS(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
