#include "attention/algorithms/causal_product/cost.hpp"

#include <algorithm>

#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/algorithms/recurrence/fused_cost.hpp"
#include "attention/algorithms/tokens/blocks.hpp"

namespace attnbench::causal_product {
namespace {

Cost common_cost(const ProductSizes& n) {
  Cost cost;
  const double tokens = n.heads * (n.keys + n.queries);
  cost.model_flops = 2 * tokens * n.features * n.width + 1.5 * tokens * n.features;
  cost.executed_flops = 2 * tokens * n.features * (n.width + 1);
  cost.minimal_bytes = tokens * (n.features + n.width) * n.bytes;
  cost.exponentials = tokens * n.features;
  if (n.causal) cost.state_bytes = n.heads * n.features * (n.width + 1) * n.wide_bytes();
  return cost;
}

}  // namespace

ProductSizes sizes_of(const Problem& problem, double features) {
  return {static_cast<double>(problem.batch * problem.heads),
          static_cast<double>(problem.length),
          static_cast<double>(problem.key_length),
          features,
          static_cast<double>(problem.value_dim),
          static_cast<double>(bytes_of(problem.dtype)),
          problem.pattern == Pattern::causal};
}

Cost materialised_cost(const ProductSizes& n) {
  Cost cost = common_cost(n);
  const double features = n.heads * (n.queries + n.keys) * n.features * n.wide_bytes();
  const double sums = n.heads * (n.queries + n.keys) * (n.width + 1) * n.wide_bytes();
  const double state = n.heads * n.features * (n.width + 1) * n.wide_bytes();
  cost.workspace_bytes = 2 * features + state;
  cost.saved_bytes = 3 * features + sums + state;
  cost.backward_flops = 2;
  if (n.causal) {
    // One state per token, one more per block of 16; products of a block, the new token, the
    // read-out.
    cost.executed_flops = 6 * n.heads * n.keys * n.features * (n.width + 1);
    cost.workspace_bytes = n.keys * state * 17 / 16 + 2.5 * features;
    cost.saved_bytes = cost.workspace_bytes;
  }
  if (n.bytes < n.wide_bytes()) cost.workspace_bytes += features + sums;
  return cost;
}

Cost scan_cost(const ProductSizes& n) {
  Cost cost = common_cost(n);
  const double block = std::min(n.keys, 64.0);
  cost.workspace_bytes = n.heads * n.wide_bytes() *
                         (n.features * (n.width + 1) + block * (4 * n.features + 4 * n.width));
  cost.backward_flops = 3;
  return cost;
}

Cost chunked_cost(const ProductSizes& n, double chunk) {
  Cost cost = common_cost(n);
  chunk = std::min(chunk, n.keys);
  const double tokens = std::min(static_cast<double>(kChunksInPiece) * chunk, n.keys);
  const double inside = 2 * n.heads * n.keys * chunk;
  cost.executed_flops += inside * (n.features + n.width + 1);
  cost.workspace_bytes = n.heads * n.wide_bytes() *
                         (tokens * (3 * n.features + 3 * n.width + chunk) +
                          n.features * (n.width + 1) * (tokens / chunk + 2));
  cost.backward_flops = (14 * n.heads * n.keys * n.features * (n.width + 1) +
                         inside * (3 * n.features + 4 * n.width)) /
                        cost.executed_flops;
  return cost;
}

Cost fused_cost(const ProductSizes& n, const Problem& problem) {
  return in_one_kernel(common_cost(n),
                       fused_workspace_bytes(problem, static_cast<std::int64_t>(n.features)));
}

}  // namespace attnbench::causal_product
