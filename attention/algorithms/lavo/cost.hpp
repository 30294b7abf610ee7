// What LAVO costs, forward.
#pragma once

#include "attention/mechanism.hpp"

namespace attnbench::orthogonal_memory {

struct CostSizes {
  Problem problem;
  std::int64_t bases = 1;  ///< r
  Window window;           ///< of the local part
  bool plain = false;
  bool biased = false;  ///< whether the local part has a bias by distance
};

/// What every form costs: model FLOPs, minimal bytes, state; and the FLOPs of its memory part.
Cost common_cost(const CostSizes& sizes);
double memory_flops(const CostSizes& sizes);

Cost whole_cost(const CostSizes& sizes);
/// Pieces of at most `most` tokens; the causal pattern only.
Cost pieces_cost(const CostSizes& sizes, std::int64_t most);

}  // namespace attnbench::orthogonal_memory
