// What the machine can do at most at this moment: the measure beside which rates are read.
#pragma once

#include "attention/kernels/team.hpp"

namespace attnbench::bench {

enum class Unit {
  fma_float32,   ///< multiply-adds of the widest vectors
  dot_bfloat16,  ///< AVX512_BF16: products of pairs, added to floats
  tile_bfloat16  ///< AMX
};

/// Floating-point operations per second of all the team's threads at once, from registers; the best
/// of some 20 ms. 0 where the machine has no such unit.
double peak(Unit unit, kernels::ThreadTeam& team);

}  // namespace attnbench::bench
