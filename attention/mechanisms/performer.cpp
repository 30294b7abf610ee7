// Performer (FAVOR+), Choromanski et al. 2021: linear attention whose features estimate the softmax
// kernel. See attention/algorithms/performer/performer.hpp.
#include "attention/algorithms/performer/performer.hpp"

#include <algorithm>
#include <cmath>

#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

// ---- costs: the pool or the causal product, and the features of queries and keys

/// Sizes and choices that the costs depend on.
struct Sizes {
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

Sizes sizes_of(const Options& options, const Problem& problem) {
  return {causal_product::sizes_of(problem, static_cast<double>(options.integer("features"))),
          static_cast<double>(problem.head_dim),
          options.text("kernel") == "softmax" && options.text("form") == "exact",
          options.text("projection") != "none", static_cast<double>(options.integer("chunk"))};
}

/// `cost` of mixing features plus that of computing them, with `products` with omega backward.
Cost with_features(Cost cost, const Sizes& of, double products) {
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

Cost composite_cost(const Options& options, const Problem& problem) {
  const Sizes of = sizes_of(options, problem);
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

Cost scan_cost(const Options& options, const Problem& problem) {
  const Sizes of = sizes_of(options, problem);
  Cost cost = of.pools ? prefix_pool::scan_cost(of.pool()) : causal_product::scan_cost(of.n);
  // Backward the features are computed three times (keys twice, queries once or twice).
  return with_features(cost, of, 3);
}

Cost chunked_cost(const Options& options, const Problem& problem) {
  const Sizes of = sizes_of(options, problem);
  Cost cost = of.pools ? prefix_pool::chunked_cost(of.pool(), of.chunk)
                       : causal_product::chunked_cost(of.n, of.chunk);
  return with_features(cost, of, 3);
}

Cost fused_cost(const Options& options, const Problem& problem) {
  const Sizes of = sizes_of(options, problem);
  const auto& n = of.n;
  const auto features = static_cast<std::int64_t>(n.features);
  Cost cost;
  if (!n.causal) {
    // With a gradient the features are computed before the kernel, and kept.
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
  // Features of queries and keys of a few tokens; relu needs two more arrays.
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

// ---- implementations

using Way = PerformerWay;

Implementation implementation_of(Way way, const std::string& name, const std::string& title) {
  Implementation implementation = causal_implementation(
      "performer", name, title, [way](Mechanism& mechanism, const Inputs& inputs, State* state) {
        return mix_performer(way, mechanism, inputs, state);
      });
  implementation.growth.workspace_in_length = 0;
  return implementation;
}

Support fused_supports(const Options& options, const Problem& problem) {
  const std::int64_t features = options.integer("features");
  if (problem.pattern != Pattern::causal) {
    if (options.text("kernel") == "relu" || options.text("form") == "published") {
      return Support::no(
          "performer: in patterns other than causal only exact exponential features have a kernel; "
          "use composite");
    }
    return prefix_pool::whole_fused_supports(problem);
  }
  return options.text("kernel") == "relu" ? causal_product::fused_supports(problem, features)
                                          : prefix_pool::fused_supports(problem, features);
}

std::vector<Implementation> implementations() {
  Implementation composite =
      implementation_of(Way::composite, "composite", "features and all prefixes at once");
  composite.supports = supports_all;
  composite.cost = composite_cost;
  composite.growth.workspace_in_length = 1;
  Implementation scan = implementation_of(Way::scan, "scan", "token by token from a state");
  scan.cost = scan_cost;
  scan.rank = -1;
  Implementation chunked = implementation_of(
      Way::chunked, "chunked", "stable matrix products over chunks, features computed within");
  chunked.cost = chunked_cost;
  chunked.rank = 10;
  Implementation fused = implementation_of(
      Way::fused, "fused", "features of a few tokens at a time, and one kernel over their sums");
  fused.supports = fused_supports;
  fused.cost = fused_cost;
  fused.growth.from_length = kGrowingTogether;
  fused.rank = 20;
  return {composite, scan, chunked, fused};
}

// ---- the entry

std::vector<Option> options() {
  return {
      Option::integer("features", 0,
                      "random features of each head; 0 = head_dim ln head_dim, rounded down", 0),
      Option::text("kernel", {"softmax", "relu"},
                   "what the features estimate: exp(h), or relu(omega.x) + 0.001"),
      Option::text(
          "form", {"exact", "published"},
          "exact: no epsilon, stable for any input; published: the epsilon and stabilisers "
          "of performer-pytorch, for comparison, not causal, no gradient through them"),
      Option::number("epsilon", 1e-4, "added to each feature of the published form", 0),
      Option::text("projection", {"orthogonal", "iid", "none"},
                   "directions of the features: orthogonal in groups of head_dim, independent, or "
                   "the inputs themselves (relu only: Long Range Arena's default)"),
      Option::text(
          "norms", {"chi", "sqrt"},
          "norms of the features' directions: as of normal vectors, or all sqrt(head_dim)"),
      Option::boolean("features_of_each_head", false, "whether each head draws its own features"),
      Option::integer("redraw_every", 0,
                      "training forward passes between redraws of the features; 0 = never", 0),
      chunk_option()};
}

Support supports(const Options& options, const Problem& problem) {
  if (options.text("form") == "published" && problem.pattern == Pattern::causal) {
    return Support::no(
        "performer: the published form is not causal, since its keys are scaled by a maximum that "
        "includes later keys, and its epsilon does not cancel that; use form exact");
  }
  return unshared_heads("performer", problem);
}

Options derive(const Options& options, const Problem& problem) {
  Options derived = options;
  const double width = static_cast<double>(problem.head_dim);
  const auto said = options.integer("features");
  const bool relu = options.text("kernel") == "relu";
  if (relu && options.text("form") == "published") {
    throw UsageError("performer: form published belongs to kernel softmax; leave it out for relu");
  }
  if (options.text("projection") == "none") {
    if (!relu) throw UsageError("performer: projection none needs kernel relu");
    if (said != 0 && said != problem.head_dim) {
      throw UsageError("performer: projection none has as many features as head_dim, " +
                       std::to_string(problem.head_dim) + ", not " + std::to_string(said));
    }
    derived.set("features", problem.head_dim);
  } else if (said == 0) {
    const auto count = static_cast<std::int64_t>(std::floor(width * std::log(width)));
    derived.set("features", std::max<std::int64_t>(1, count));
  }
  return derived;
}

}  // namespace

Entry performer() {
  Entry entry;
  entry.name = "performer";
  entry.title = "Performer: positive random features of the softmax kernel";
  entry.citation =
      "Choromanski et al. 2021, Rethinking Attention with Performers, arXiv:2009.14794";
  entry.options = options();
  entry.differs_from = {
      {"performer-pytorch adds an epsilon to its features and scales the keys by a maximum over "
       "all "
       "tokens; here there is neither, so that the causal pattern is causal",
       "form=published gives that form, bidirectional and cross"},
      {"published code uses the signs of LAPACK's QR for its orthogonal features, which biases the "
       "kernel; here they are corrected",
       "not available: projection=iid has no QR"}};
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = supports;
  entry.derive = derive;
  entry.make = maker<Performer>("performer");
  entry.implementations = implementations();
  entry.aliases = {{"performer_relu",
                    "performer",
                    "auto",
                    {{"kernel", std::string("relu")}},
                    "Performer with relu features"}};
  return entry;
}

}  // namespace attnbench::mechanisms
