#include "attention/kernels/cpu/recurrent/state_scan.hpp"

#include <algorithm>

#include "attention/kernels/cpu/product/multiply.hpp"
#include "attention/kernels/cpu/simd/simd.hpp"

namespace attnbench::kernels {
namespace {

/// Rows [l, l + M). `First`: o starts from 0; `Last`: it is multiplied by its factors.
template <class R, int Bytes, Decay Decays, Order Time, int M, int N, bool First, bool Last>
ATTNBENCH_INLINE void scan_tile(const ScanBlock<R>& block, std::int64_t l, std::int64_t d) {
  using S = Simd<R, Bytes>;
  typename S::Vector sums[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      const std::int64_t column = d + j * S::lanes;
      const auto before = S::load(block.state + (l + i) * block.state_stride + column);
      if constexpr (Decays == Decay::rows) {
        sums[i][j] = block.decay[l + i] * before;
      } else {
        sums[i][j] = S::load(block.decay + column) * before;
      }
    }
  }
  // Copies: for all the compiler knows a store to o may change what `block` refers to.
  constexpr std::int64_t sign = Time == Order::forwards ? 1 : -1;
  const std::int64_t e_step = sign * block.e.token;
  const std::int64_t p_step = sign * block.p.token;
  const std::int64_t v_step = sign * block.v.token;
  const std::int64_t o_step = sign * block.o.token;
  const std::int64_t first = Time == Order::forwards ? 0 : block.tokens - 1;
  const R* e = block.e.at(first, l);
  const R* p = block.p.at(first, l);
  const R* v = block.v.at(first, d);
  R* o = block.o.at(first, d);
  std::int64_t v_beside[N];
  std::int64_t o_beside[N];
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) {
    v_beside[j] = block.v.at(first, d + j * S::lanes) - v;
    o_beside[j] = block.o.at(first, d + j * S::lanes) - o;
  }
  const R* factor = block.factors;
  Prefetch::Column prefetch = block.prefetch->next(o);
  for (std::int64_t t = block.tokens; t > 0; --t) {
    fetch(prefetch.from);
    prefetch.from += static_cast<std::uintptr_t>(prefetch.step);
    typename S::Vector value[N];
    typename S::Vector read[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      value[j] = S::load(v + v_beside[j]);
      read[j] = First ? S::broadcast(0) : S::load(o + o_beside[j]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        sums[i][j] += e[i] * value[j];
        read[j] += p[i] * sums[i][j];
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      if constexpr (Last) read[j] *= *factor;
      S::store(o + o_beside[j], read[j]);
    }
    if constexpr (Last) ++factor;
    e += e_step;
    p += p_step;
    v += v_step;
    o += o_step;
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      S::store(block.state + (l + i) * block.state_stride + d + j * S::lanes, sums[i][j]);
    }
  }
}

template <class R, int Bytes, Decay Decays, Order Time, int M, int N>
ATTNBENCH_INLINE void scan_rows(const ScanBlock<R>& block, std::int64_t l, std::int64_t d) {
  const bool first = l == 0 && !block.continued;
  if constexpr (Decays == Decay::rows && Time == Order::forwards) {
    if (block.factors != nullptr && l + M == block.rows) {
      if (first) {
        scan_tile<R, Bytes, Decays, Time, M, N, true, true>(block, l, d);
      } else {
        scan_tile<R, Bytes, Decays, Time, M, N, false, true>(block, l, d);
      }
      return;
    }
  }
  if (first) {
    scan_tile<R, Bytes, Decays, Time, M, N, true, false>(block, l, d);
  } else {
    scan_tile<R, Bytes, Decays, Time, M, N, false, false>(block, l, d);
  }
}

/// All rows of N vectors of columns, by tiles of as many rows as the registers hold: 16 sums in 32
/// registers of 64 bytes, 8 in 16 of the others, beside the values and results. 24 sums would fit
/// in 32 too: alone they take 3 to 5 % less time, but among what else a block does up to 3 % more.
template <class R, int Bytes, Decay Decays, Order Time, int N>
ATTNBENCH_INLINE void scan_columns(const ScanBlock<R>& block, std::int64_t d) {
  constexpr int least = static_cast<int>(latent_unit);
  constexpr int M = has_32_registers<Bytes> ? 2 * least : least;
  std::int64_t l = 0;
  for (; l + M <= block.rows; l += M) scan_rows<R, Bytes, Decays, Time, M, N>(block, l, d);
  if constexpr (M != least) {
    if (l < block.rows) scan_rows<R, Bytes, Decays, Time, least, N>(block, l, d);
  }
}

/// N vectors of columns of all rows.
template <class R, int Bytes, int N>
ATTNBENCH_INLINE void scan_token_columns(const ScanBlock<R>& block, std::int64_t d) {
  using S = Simd<R, Bytes>;
  constexpr std::uintptr_t prefetch = 1024;  // bytes
  constexpr int line = 64 / Bytes;           // vectors of one
  typename S::Vector value[N];
  typename S::Vector read[N];
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) {
    value[j] = S::load(block.v.at(0, d + j * S::lanes));
    read[j] = block.continued ? S::load(block.o.at(0, d + j * S::lanes)) : S::broadcast(0);
  }
  R* row = block.state + d;
  const R* decay = block.decay;
  const std::int64_t stride = block.state_stride;
  for (std::int64_t l = 0; l < block.rows; l += panel_columns<R>) {
    const R* e = block.e.at(0, l);
    const R* p = block.p.at(0, l);
    for (std::int64_t i = std::min(panel_columns<R>, block.rows - l); i > 0; --i) {
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) {
        if (j % line == 0) {
          const auto here = reinterpret_cast<std::uintptr_t>(row + j * S::lanes);
          __builtin_prefetch(reinterpret_cast<const void*>(here + prefetch), 1, 3);
        }
        const auto sum = *decay * S::load(row + j * S::lanes) + *e * value[j];
        S::store(row + j * S::lanes, sum);
        read[j] += *p * sum;
      }
      row += stride;
      ++decay;
      ++e;
      ++p;
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < N; ++j) {
    if (block.factors != nullptr) read[j] *= block.factors[0];
    S::store(block.o.at(0, d + j * S::lanes), read[j]);
  }
}

}  // namespace

template <class R, int Bytes, Decay Decays, Order Time>
void scan(const ScanBlock<R>& block) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
    std::int64_t d = 0;
    for (; d + 2 * lanes <= block.columns; d += 2 * lanes) {
      scan_columns<R, Bytes, Decays, Time, 2>(block, d);
    }
    if (d < block.columns) scan_columns<R, Bytes, Decays, Time, 1>(block, d);
  });
}

template <class R, int Bytes>
void scan_token(const ScanBlock<R>& block) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    constexpr int most = has_32_registers<Bytes> ? 8 : 4;
    in_runs<most>(block.columns / Simd<R, Bytes>::lanes, [&](std::int64_t first,
                                                             auto vectors) ATTNBENCH_INLINE_LAMBDA {
      scan_token_columns<R, Bytes, decltype(vectors)::value>(block, first * Simd<R, Bytes>::lanes);
    });
  });
}

#define ATTNBENCH_INSTANTIATE(R, BYTES)                                                \
  template void scan<R, BYTES, Decay::rows, Order::forwards>(const ScanBlock<R>&);     \
  template void scan<R, BYTES, Decay::rows, Order::backwards>(const ScanBlock<R>&);    \
  template void scan<R, BYTES, Decay::columns, Order::forwards>(const ScanBlock<R>&);  \
  template void scan<R, BYTES, Decay::columns, Order::backwards>(const ScanBlock<R>&); \
  template void scan_token<R, BYTES>(const ScanBlock<R>&);
ATTNBENCH_FOR_REALS(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
