#include "attention/algorithms/performer/cost.hpp"

#include <algorithm>

#include "attention/algorithms/causal_product/cost.hpp"
#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/algorithms/prefix_pool/cost.hpp"
#include "attention/algorithms/recurrence/fused_cost.hpp"
#include "attention/algorithms/tokens/blocks.hpp"

namespace attnbench {
namespace {

struct Asked {
  causal_product::ProductSizes n;
  double dim;      ///< D of queries and keys
  bool pools;      ///< exp features, by the pool; else relu, by the product
  bool projected;  ///< features are products with omega
  double chunk;

  prefix_pool::PoolSizes pool() const { return {n.heads, n.keys, n.features, n.width, n.bytes}; }
  /// FLOPs of one product with omega for all queries and keys.
  double projection() const {
    return projected ? 2 * n.heads * (n.queries + n.keys) * n.features * dim : 0;
  }
};

Asked asked(const Options& options, const Problem& problem) {
  return {causal_product::sizes_of(problem, static_cast<double>(options.integer("features"))),
          static_cast<double>(problem.head_dim),
          options.text("kernel") == "softmax" && options.text("form") == "exact",
          options.text("projection") != "none", static_cast<double>(options.integer("chunk"))};
}

/// The cost of mixing features, with that of making them: `products` with omega backwards.
Cost with_features(Cost cost, const Asked& of, double products) {
  const auto& n = of.n;
  const double made = of.projection();
  cost.backward_flops =
      (cost.backward_flops * cost.executed_flops + products * made) / (cost.executed_flops + made);
  cost.model_flops += made;
  cost.executed_flops += made;
  cost.minimal_bytes = n.heads * (n.queries + n.keys) * (of.dim + n.width) * n.bytes;
  if (of.projected) cost.minimal_bytes += n.features * of.dim * n.wide_bytes();
  if (!of.pools) {
    cost.exponentials = 0;
  } else {
    cost.exponentials = std::max(cost.exponentials, n.heads * (n.queries + n.keys) * n.features);
  }
  return cost;
}

}  // namespace

Cost performer_composite_cost(const Options& options, const Problem& problem) {
  const Asked of = asked(options, problem);
  const auto& n = of.n;
  const double inputs = n.heads * (n.queries + n.keys) * (of.dim + n.width) * n.wide_bytes();
  const double keys = n.heads * n.keys * n.features * n.wide_bytes();
  const double queries = n.heads * n.queries * n.features * n.wide_bytes();
  Cost cost;
  if (of.pools && n.causal) {
    cost = prefix_pool::materialised_cost(of.pool());
    cost.workspace_bytes += keys + queries;
    cost.saved_bytes += keys + queries + inputs;
  } else {
    cost = causal_product::materialised_cost(n);
    if (!n.causal) cost.workspace_bytes = 2 * keys + 3 * queries;
    if (of.projected) cost.saved_bytes += inputs;
    if (n.bytes < n.wide_bytes()) cost.workspace_bytes += inputs;
  }
  return with_features(cost, of, 1);
}

Cost performer_scan_cost(const Options& options, const Problem& problem) {
  const Asked of = asked(options, problem);
  Cost cost = of.pools ? prefix_pool::scan_cost(of.pool()) : causal_product::scan_cost(of.n);
  // Backwards the features are made three times over (keys twice, queries once or twice).
  return with_features(cost, of, 3);
}

Cost performer_chunked_cost(const Options& options, const Problem& problem) {
  const Asked of = asked(options, problem);
  Cost cost = of.pools ? prefix_pool::chunked_cost(of.pool(), of.chunk)
                       : causal_product::chunked_cost(of.n, of.chunk);
  return with_features(cost, of, 3);
}

Cost performer_fused_cost(const Options& options, const Problem& problem) {
  const Asked of = asked(options, problem);
  const auto& n = of.n;
  const auto features = static_cast<std::int64_t>(n.features);
  Cost cost;
  if (!n.causal) {
    // With a gradient the features are made before the kernel, and kept.
    cost = causal_product::materialised_cost(n);
    cost.workspace_bytes = prefix_pool::whole_fused_workspace_bytes(
        problem, features, prefix_pool::Query::logits_plus_z, true);
    cost.saved_bytes = n.heads * (n.queries + n.keys) * (n.features + of.dim) * n.wide_bytes() +
                       n.heads * n.keys * n.width * n.wide_bytes();
    cost.backward_flops = 2.5;
    return with_features(cost, of, 1);
  }
  if (of.pools) {
    cost = prefix_pool::fused_cost(of.pool(), problem);
    cost.workspace_bytes =
        prefix_pool::fused_workspace_bytes(problem, features, prefix_pool::Query::logits_plus_z);
  } else {
    cost = causal_product::fused_cost(n, problem);
  }
  // Features of queries and keys of a few tokens; relu takes two more on its way.
  const double tokens = std::min(
      n.queries, static_cast<double>(tokens_together(static_cast<std::int64_t>(n.heads), features,
                                                     static_cast<std::int64_t>(n.wide_bytes()))));
  cost.workspace_bytes +=
      n.heads * tokens *
      ((of.pools ? 2 : 4) * n.features + of.dim + (n.bytes < n.wide_bytes() ? n.width : 0)) *
      n.wide_bytes();
  cost.workspace_bytes += n.heads * n.features * (n.width + 2) * n.wide_bytes();
  if (n.bytes < n.wide_bytes()) cost.workspace_bytes += n.heads * n.queries * n.width * 4;
  return with_features(cost, of, 3);
}

}  // namespace attnbench
