// Decays of a state from their logarithms.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/simd/simd.hpp"

namespace attnbench::kernels {

/// 2^y for y <= 0, rounded about as well as the library's: a state may be decayed thousands of
/// times by numbers near 1, where a biased error of simd.hpp's faster form would add up.
template <class R, int Bytes>
ATTNBENCH_INLINE typename Simd<R, Bytes>::Vector rounded_exp2(typename Simd<R, Bytes>::Vector y) {
  using S = Simd<R, Bytes>;
  using E = Exponential<R>;
  const auto shifted = y + E::to_integer;
  const auto fraction = y - (shifted - E::to_integer);
  auto power = S::broadcast(E::coefficients[0]);
  for (std::size_t i = 1; i < sizeof E::coefficients / sizeof(R); ++i) {
    power = power * fraction + E::coefficients[i];
  }
  using Integers = typename S::Integers;
  const Integers scaled = reinterpret_cast<const Integers&>(power) +
                          (reinterpret_cast<const Integers&>(shifted) << E::mantissa);
  const auto tiny = y < E::least;
  const Integers result = scaled & ~reinterpret_cast<const Integers&>(tiny);
  return reinterpret_cast<const typename S::Vector&>(result);
}

/// e^x for x <= 0, likewise.
template <class R, int Bytes>
ATTNBENCH_INLINE typename Simd<R, Bytes>::Vector decay_of(typename Simd<R, Bytes>::Vector x) {
  return rounded_exp2<R, Bytes>(x * static_cast<R>(log2_of_e));
}

/// `count` decays of logarithms, followed by 1 up to `stride`, which need not be whole vectors.
template <class R, int Bytes>
ATTNBENCH_INLINE void to_decays(const R* logs, std::int64_t count, R* to, std::int64_t stride) {
  using S = Simd<R, Bytes>;
  for (std::int64_t i = 0; i < stride; i += S::lanes) {
    R part[S::lanes] = {};
    std::copy_n(logs + i, std::clamp<std::int64_t>(count - i, 0, S::lanes), part);
    S::store(part, decay_of<R, Bytes>(S::load(part)));
    std::copy_n(part, std::min<std::int64_t>(stride - i, S::lanes), to + i);
  }
}

}  // namespace attnbench::kernels
