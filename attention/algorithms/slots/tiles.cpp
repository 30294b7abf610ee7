#include "attention/algorithms/slots/tiles.hpp"

#include <algorithm>

#include "attention/algorithms/slots/softmax_pool.hpp"

namespace attnbench::slot_memory {
namespace {

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

Support tiles_support(const Sizes& sizes) {
  if (sizes.averaging && sizes.problem.key_length == 1) {
    // Slots that are alike are read with a gradient of 0, of which rounding would leave something.
    return Support::no("a single token fills every slot alike; use composite");
  }
  const Support packs = tiled_supports(sizes.problem, packing(sizes));
  return packs ? tiled_supports(sizes.problem, reading(sizes)) : packs;
}

Cost tiles_cost(const Sizes& n) {
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

}  // namespace attnbench::slot_memory
