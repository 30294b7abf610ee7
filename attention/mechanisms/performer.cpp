// Performer (FAVOR+), Choromanski et al. 2021: linear attention whose features estimate the softmax
// kernel. See attention/algorithms/performer/performer.hpp.
#include "attention/algorithms/performer/performer.hpp"

#include <algorithm>
#include <cmath>

#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using feature_mix::Way;

bool pools(const Options& options) {
  return options.text("kernel") == "softmax" && options.text("form") == "exact";
}

feature_mix::Sizes sizes_of(const Options& options, const Problem& problem) {
  feature_mix::Sizes of;
  of.n = causal_product::sizes_of(problem, static_cast<double>(options.integer("features")));
  of.dim = static_cast<double>(problem.head_dim);
  of.logarithms = pools(options);
  of.chunk = static_cast<double>(options.integer("chunk"));
  if (options.text("projection") == "none") return of;  // relu alone
  of.making = 2 * of.n.heads * (of.n.queries + of.n.keys) * of.n.features * of.dim;
  of.own_numbers = of.n.features * of.dim;
  return of;
}

// ---- implementations

Implementation implementation_of(Way way, const std::string& name, const std::string& title) {
  Implementation implementation = causal_implementation(
      "performer", name, title, [way](Mechanism& mechanism, const Inputs& inputs, State* state) {
        return mix_performer(way, mechanism, inputs, state);
      });
  implementation.cost = [way](const Options& options, const Problem& problem) {
    return feature_mix::cost(way, sizes_of(options, problem), problem);
  };
  implementation.growth.workspace_in_length = 0;
  return implementation;
}

Support fused_supports(const Options& options, const Problem& problem) {
  return feature_mix::fused_supports("performer", problem, options.integer("features"),
                                     pools(options));
}

std::vector<Implementation> implementations() {
  Implementation composite =
      implementation_of(Way::composite, "composite", "features and all prefixes at once");
  composite.supports = supports_all;
  composite.growth.workspace_in_length = 1;
  Implementation scan = implementation_of(Way::scan, "scan", "token by token from a state");
  scan.rank = -1;
  Implementation chunked = implementation_of(
      Way::chunked, "chunked", "stable matrix products over chunks, features computed within");
  chunked.rank = 10;
  Implementation fused = implementation_of(
      Way::fused, "fused", "features of a few tokens at a time, and one kernel over their sums");
  fused.supports = fused_supports;
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
  entry.formula =
      "y_t = sum_s w_ts v_s / sum_s w_ts,  w_ts = phi(q_t).phi(k_s)\n"
      "phi_i(x) = exp(omega_i.x' - |x'|^2 / 2),  x' = D^(-1/4) x,  omega random";
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
