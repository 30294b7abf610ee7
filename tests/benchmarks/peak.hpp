// What the machine can do at most at this moment: the measure beside which rates are read.
#pragma once

#include "attention/kernels/team.hpp"

namespace attnbench::bench {

enum class Unit {
  fma_float32,      ///< multiply-adds of the widest vectors
  product_float32,  ///< the same, in a product of matrices in the first cache
  dot_bfloat16,     ///< AVX512_BF16: products of pairs, added to floats; slow beside AMX
  tile_bfloat16     ///< AMX
};
constexpr int unit_count = 4;

/// Floating-point operations per second of all the team's threads at once, from registers but for
/// products; the best of some 20 ms. 0 where the machine has no such unit.
double peak(Unit unit, kernels::ThreadTeam& team);

/// Powers of two per second of all the team's threads at once, of floats in the first cache, and
/// bytes per second of reading `bytes` bytes over and over; the best of some 20 ms.
double exponential_peak(kernels::ThreadTeam& team);
double reading_peak(double bytes, kernels::ThreadTeam& team);
/// The same of the powers of two that bfloat16 weights are made of, as its kernels raise, round and
/// store them. 0 without AVX512_BF16.
double bfloat16_weight_peak(kernels::ThreadTeam& team);

}  // namespace attnbench::bench
