#include <algorithm>

#include "attention/algorithms/slots/slots.hpp"

namespace attnbench::slots {
namespace {

/// The same for all causal forms: the weights of a token, the update of the memory, two reads.
Cost causal_cost(const Sizes& n) {
  Cost cost;
  const double slots = n.heads() * n.queries() * n.latents;
  cost.model_flops = 2 * slots * (2 * n.width() + n.columns() + n.value_width());
  cost.executed_flops = cost.model_flops;
  // A Perceiver packs by its keys, Luna by separate keys.
  const double packed = n.averaging ? 0 : n.width();
  cost.minimal_bytes =
      n.heads() * n.bytes() *
      (n.queries() * (n.width() + packed + n.columns() + n.value_width()) + n.latents * n.width());
  cost.exponentials = 2 * slots;
  cost.state_bytes =
      n.heads() * n.wide_bytes() * (n.latents * n.columns() + (n.averaging ? 2 * n.latents : 1));
  return cost;
}

kernels::SoftmaxSizes sizes_of(const Sizes& n, std::int64_t queries, std::int64_t keys) {
  kernels::SoftmaxSizes sizes;
  sizes.batch = n.problem.batch;
  sizes.heads = sizes.kv_heads = n.problem.heads;
  sizes.length = queries;
  sizes.key_length = keys;
  sizes.head_dim = n.problem.head_dim;
  sizes.value_dim = n.problem.value_dim;
  return sizes;
}

kernels::SoftmaxSizes packing(const Sizes& n) {
  return sizes_of(n, static_cast<std::int64_t>(n.latents), n.problem.key_length);
}

kernels::SoftmaxSizes reading(const Sizes& n) {
  return sizes_of(n, n.problem.length, static_cast<std::int64_t>(n.latents));
}

}  // namespace

Cost bidirectional_cost(const Sizes& n) {
  // A Perceiver pools keys and values; Luna packs only the values, which are the keys if tied.
  const double pooled = n.averaging ? n.columns() : n.width();
  const double packed = n.averaging ? n.columns() : n.width() * (n.tied ? 1 : 2);
  Cost cost;
  cost.model_flops =
      2 * n.heads() * n.latents *
      (n.keys() * (n.width() + pooled) + n.queries() * (n.width() + n.value_width()));
  cost.executed_flops = cost.model_flops;
  cost.minimal_bytes =
      n.heads() * n.bytes() *
      (n.keys() * packed + n.queries() * (n.width() + n.value_width()) + n.latents * n.width());
  cost.exponentials = n.heads() * n.latents * (n.keys() + n.queries());
  const double each = n.heads() * n.wide_bytes();
  const double packing = each * n.latents * n.keys();
  const double reading = each * n.latents * n.queries();
  const double query = each * n.queries() * n.width();
  const double output = each * n.queries() * n.value_width();
  double held = each * n.latents * (n.columns() + (n.averaging ? 0 : 2 * n.width()));
  if (n.bytes() < n.wide_bytes()) held += each * (n.keys() * packed) + output;
  // The output is not allocated yet while the pack and the logits are computed.
  cost.workspace_bytes =
      held + std::max({reading, 2 * packing - output, reading + std::max(reading, query) - output});
  cost.saved_bytes = held + packing + reading + query;
  cost.backward_flops = 2;
  return cost;
}

Support tiled_supports(const Sizes& sizes) {
  if (sizes.averaging && sizes.problem.key_length == 1) {
    // All slots are equal: their reading has gradient 0, of which the kernel leaves a rounding
    // error.
    return Support::no("all slots of a single token are equal; use composite");
  }
  const Support packs = attnbench::tiled_supports(sizes.problem, packing(sizes));
  return packs ? attnbench::tiled_supports(sizes.problem, reading(sizes)) : packs;
}

Cost tiled_cost(const Sizes& n) {
  Cost cost = bidirectional_cost(n);
  const double packed = n.heads() * n.latents * n.keys();
  if (n.averaging && !pooled_at_once(n.problem)) {
    cost.executed_flops += 2 * packed * n.width();
    cost.exponentials += packed;
  }
  const double slots =
      n.heads() * n.latents * (n.columns() + (n.averaging ? 0 : 2 * n.width())) * n.wide_bytes();
  const double packs = n.averaging ? pooled_workspace_bytes(n.problem, packing(n))
                                   : tiled_workspace_bytes(n.problem, packing(n));
  cost.workspace_bytes = slots + std::max(packs, tiled_workspace_bytes(n.problem, reading(n)));
  cost.saved_bytes = slots + n.heads() * (n.queries() + 2 * n.latents) * n.wide_bytes();
  cost.backward_flops = 2.5;
  return cost;
}

Cost materialised_cost(const Sizes& n) {
  Cost cost = causal_cost(n);
  const double slots = n.heads() * n.queries() * n.latents;
  const double tokens = n.heads() * n.queries() * n.wide_bytes();
  // A state per token and one per block of 16; products of a block, the new token, the output.
  cost.executed_flops = 6 * slots * (n.width() + n.value_width());
  if (n.averaging) {
    const double prefixes = slots * (n.columns() + 1) * n.wide_bytes();
    cost.exponentials = 5 * slots;
    cost.workspace_bytes = 4 * prefixes;
    cost.saved_bytes = 3 * prefixes;
  } else {
    const double states = slots * std::max(n.width(), n.value_width()) * n.wide_bytes() * 17 / 16;
    cost.workspace_bytes = states + 6 * slots * n.wide_bytes() + 3 * tokens * n.width();
    cost.saved_bytes = 2 * states + 8 * slots * n.wide_bytes() + 3 * tokens * n.width();
  }
  cost.backward_flops = 2;
  return cost;
}

Cost chunked_cost(const Sizes& n, double chunk) {
  Cost cost = causal_cost(n);
  chunk = std::min(chunk, n.queries());
  const double tokens = n.heads() * n.queries();
  if (chunk > 1) {
    cost.executed_flops += 2 * tokens * chunk * (2 * n.latents + n.width() + n.value_width());
  }
  if (n.averaging) cost.executed_flops += tokens / chunk * n.latents * n.columns();
  const double piece =
      std::min(chunk == 1 ? 64 : static_cast<double>(kChunksInPiece) * chunk, n.queries());
  const double memory = n.latents * n.columns();
  const double widened = n.bytes() < n.wide_bytes() ? n.width() + n.columns() : 0;
  cost.workspace_bytes =
      n.heads() * n.wide_bytes() *
      (piece * (n.latents + widened + n.value_width()) +
       std::max(piece * n.value_width(), chunk * (5 * n.latents + 2 * chunk)) + 4 * memory);
  // A memory at the start of every piece, and what autograd keeps of the current piece.
  cost.saved_bytes = n.heads() * n.wide_bytes() *
                     (n.queries() / piece * memory + piece / chunk * 1.25 * memory +
                      piece * (3 * chunk + 8 * n.latents + 2 * n.columns()));
  // The chunks recomputed, and two products for each of theirs.
  cost.backward_flops = 3;
  return cost;
}

}  // namespace attnbench::slots
