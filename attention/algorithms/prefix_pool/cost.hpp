// What the forms of the prefix pool cost, forward, the softmax of the query logits included.
#pragma once

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::prefix_pool {

struct PoolSizes {
  double heads = 1;    ///< batch times heads
  double tokens = 1;   ///< T
  double latents = 1;  ///< L, per head
  double width = 1;    ///< D of the values
  double bytes = 4;    ///< of one element of the inputs
  /// Of one element of what is computed: at least float32.
  double wide_bytes() const { return bytes > 4 ? bytes : 4; }
};

/// Of `whole`, with `tokens` queries and this many keys.
Cost whole_cost(const PoolSizes& sizes, double keys);
Cost materialised_cost(const PoolSizes& sizes);
Cost scan_cost(const PoolSizes& sizes);
Cost chunked_cost(const PoolSizes& sizes, double chunk);
/// With the threads that LibTorch has now, on which the kernel's workspace depends.
Cost fused_cost(const PoolSizes& sizes, const Problem& problem);
/// Of `whole_fused`, likewise.
Cost whole_fused_cost(const PoolSizes& sizes, const Problem& problem, Query kind);

}  // namespace attnbench::prefix_pool
