#include "attention/algorithms/slots/cost.hpp"

#include <algorithm>

#include "attention/algorithms/tokens/blocks.hpp"

namespace attnbench::slot_memory {
namespace {

/// What every causal form does for a token: its weights, the update of the memory, two readings.
Cost causal_cost(const Sizes& n) {
  Cost cost;
  const double slots = n.heads() * n.queries() * n.latents;
  cost.model_flops = 2 * slots * (2 * n.width() + n.columns() + n.value_width());
  cost.executed_flops = cost.model_flops;
  // A Perceiver's keys are those that are packed; Luna packs by keys of their own.
  const double packed = n.averaging ? 0 : n.width();
  cost.minimal_bytes =
      n.heads() * n.bytes() *
      (n.queries() * (n.width() + packed + n.columns() + n.value_width()) + n.latents * n.width());
  cost.exponentials = 2 * slots;
  cost.state_bytes =
      n.heads() * n.wide_bytes() * (n.latents * n.columns() + (n.averaging ? 2 * n.latents : 1));
  return cost;
}

}  // namespace

Cost bidirectional_cost(const Sizes& n) {
  // A Perceiver pools keys and values; Luna packs the values alone, which tied are the keys.
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
  // Where the pack and the logits are made the output is still to come, in their place.
  cost.workspace_bytes =
      held + std::max({reading, 2 * packing - output, reading + std::max(reading, query) - output});
  cost.saved_bytes = held + packing + reading + query;
  cost.backward_flops = 2;
  return cost;
}

Cost materialised_cost(const Sizes& n) {
  Cost cost = causal_cost(n);
  const double slots = n.heads() * n.queries() * n.latents;
  const double tokens = n.heads() * n.queries() * n.wide_bytes();
  // One state per token, one more per block of 16; products of a block, the new token, the
  // read-out.
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
  // A memory at the start of every piece, and what autograd keeps of one piece while it is there.
  cost.saved_bytes = n.heads() * n.wide_bytes() *
                     (n.queries() / piece * memory + piece / chunk * 1.25 * memory +
                      piece * (3 * chunk + 8 * n.latents + 2 * n.columns()));
  // The chunks again, and two products for each of theirs.
  cost.backward_flops = 3;
  return cost;
}

}  // namespace attnbench::slot_memory
