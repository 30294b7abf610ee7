#include "attention/algorithms/prefix_pool/cost.hpp"

#include <algorithm>

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/algorithms/recurrence/fused_cost.hpp"
#include "attention/algorithms/tokens/blocks.hpp"

namespace attnbench::prefix_pool {
namespace {

/// What does not depend on the form: updating and reading a state of L D numbers for each token.
Cost common_cost(const PoolSizes& n) {
  Cost cost;
  cost.model_flops = 4 * n.heads * n.tokens * n.latents * n.width;
  cost.executed_flops = cost.model_flops;
  cost.minimal_bytes = n.heads * n.tokens * 2 * (n.latents + n.width) * n.bytes;
  cost.exponentials = 2 * n.heads * n.tokens * n.latents;
  cost.state_bytes = n.heads * n.latents * (n.width + 2) * n.wide_bytes();
  return cost;
}

}  // namespace

Cost whole_cost(const PoolSizes& n, double keys) {
  const double both = n.heads * (keys + n.tokens);
  Cost cost;
  cost.model_flops = 2 * both * n.latents * n.width;
  cost.executed_flops = cost.model_flops;
  cost.minimal_bytes = both * (n.latents + n.width) * n.bytes;
  cost.exponentials = both * n.latents;
  const double widened = n.bytes < n.wide_bytes() ? both * (n.latents + n.width) : 0;
  cost.workspace_bytes =
      (n.heads * n.latents * (keys + std::max(keys, n.tokens) + n.width) + widened) *
      n.wide_bytes();
  cost.saved_bytes =
      (n.heads * n.latents * (2 * keys + n.tokens + n.width) + widened) * n.wide_bytes();
  cost.backward_flops = 2;
  return cost;
}

Cost materialised_cost(const PoolSizes& n) {
  Cost cost = common_cost(n);
  const double logits = n.heads * n.tokens * n.latents;
  const double prefixes = logits * (n.width + 1);
  // Products of a block's end, the fading, the new token, the read-out.
  cost.executed_flops = 7 * prefixes;
  cost.exponentials = 4 * logits;
  // One sum per token, one more per block of 16.
  cost.workspace_bytes = (prefixes * 17 / 16 + 4 * logits) * n.wide_bytes();
  cost.saved_bytes = (prefixes * 17 / 16 + 5 * logits) * n.wide_bytes();
  if (n.bytes < n.wide_bytes()) {
    cost.workspace_bytes += n.heads * n.tokens * (2 * n.latents + n.width) * n.wide_bytes();
  }
  cost.backward_flops = 2;
  return cost;
}

Cost scan_cost(const PoolSizes& n) {
  Cost cost = common_cost(n);
  const double block = std::min(n.tokens, 64.0);
  const double updates = n.heads * n.tokens * n.latents * n.width;
  cost.executed_flops += updates;
  cost.exponentials = 3 * n.heads * n.tokens * n.latents;
  cost.workspace_bytes = n.heads * n.wide_bytes() *
                         (n.latents * (n.width + 2) + block * (8 * n.latents + 2 * n.width));
  // The sums again and their slopes, then the reverse recurrence read twice.
  cost.backward_flops = 12 * updates / cost.executed_flops;
  return cost;
}

Cost chunked_cost(const PoolSizes& n, double chunk) {
  Cost cost = common_cost(n);
  chunk = std::min(chunk, n.tokens);
  const double piece = std::min(static_cast<double>(kChunksInPiece) * chunk, n.tokens);
  const double inside = 2 * n.heads * n.tokens * chunk;
  cost.executed_flops += inside * (n.latents + n.width);
  cost.workspace_bytes = n.heads * n.wide_bytes() *
                         (piece * (6 * n.latents + 2 * n.width + 2 * chunk) +
                          2 * n.latents * n.width * (piece / chunk + 1));
  // The sums of all chunks twice; then four products with the states, six within the chunks.
  cost.backward_flops =
      (12 * n.heads * n.tokens * n.latents * n.width + inside * (4 * n.latents + 2 * n.width)) /
      cost.executed_flops;
  return cost;
}

Cost fused_cost(const PoolSizes& n, const Problem& problem) {
  return in_one_kernel(common_cost(n),
                       fused_workspace_bytes(problem, static_cast<std::int64_t>(n.latents)));
}

Cost whole_fused_cost(const PoolSizes& n, const Problem& problem, Query kind) {
  Cost cost = whole_cost(n, static_cast<double>(problem.key_length));
  cost.workspace_bytes =
      whole_fused_workspace_bytes(problem, static_cast<std::int64_t>(n.latents), kind);
  cost.saved_bytes = 0;
  cost.backward_flops = 2.5;  // the averages again, then two products for each of theirs
  return cost;
}

}  // namespace attnbench::prefix_pool
