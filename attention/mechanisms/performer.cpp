// Performer (FAVOR+), Choromanski et al. 2021: linear attention whose features estimate the softmax
// kernel. The mathematics are in attention/algorithms/performer/performer.hpp.
#include <cmath>

#include "attention/entry_parts.hpp"
#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/algorithms/performer/performer.hpp"
#include "attention/algorithms/performer/cost.hpp"
#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/algorithms/recurrence/fused_cost.hpp"

namespace attnbench::mechanisms {
namespace {

// ---- implementations

using Way = PerformerWay;

Implementation implementation_of(Way way, const std::string& name, const std::string& title) {
  Implementation made = causal_implementation(
      "performer", name, title, [way](Mechanism& mechanism, const Inputs& inputs, State* state) {
        return mix_performer(way, mechanism, inputs, state);
      });
  made.growth = {1, 0, 0, 0};
  return made;
}

Support performer_fused_supports(const Options& options, const Problem& problem) {
  const std::int64_t features = options.integer("features");
  if (problem.pattern != Pattern::causal) {
    if (options.text("kernel") == "relu" || options.text("form") == "published") {
      return Support::no(
          "performer: without an order only exact exponential features have a kernel; use "
          "composite");
    }
    return prefix_pool::whole_fused_supports(problem, features);
  }
  return options.text("kernel") == "relu" ? causal_product::fused_supports(problem, features)
                                          : prefix_pool::fused_supports(problem, features);
}

std::vector<Implementation> implementations() {
  Implementation composite =
      implementation_of(Way::composite, "composite", "features and all prefixes at once");
  composite.supports = [](const Options&, const Problem&) { return Support{}; };
  composite.cost = performer_composite_cost;
  composite.growth = {1, 1, 0, 0};
  Implementation scan = implementation_of(Way::scan, "scan", "token by token from a state");
  scan.cost = performer_scan_cost;
  scan.rank = -1;
  Implementation chunked = implementation_of(
      Way::chunked, "chunked", "stable matrix products over chunks, features made within");
  chunked.cost = performer_chunked_cost;
  chunked.rank = 10;
  Implementation fused = implementation_of(
      Way::fused, "fused", "features of a few tokens at a time, and one kernel over their sums");
  fused.supports = performer_fused_supports;
  fused.cost = performer_fused_cost;
  fused.growth.from_length = kGrowingTogether;
  fused.rank = 20;
  return {composite, scan, chunked, fused};
}

// ---- the entry

Option text_option(const std::string& name, const std::vector<std::string>& choices,
                   const std::string& meaning) {
  return {name, OptionType::text, choices.front(), meaning, {}, {}, choices};
}

std::vector<Option> options() {
  return {
      {"features",
       OptionType::integer,
       std::int64_t{0},
       "random features of each head; 0 = head_dim ln head_dim, rounded down",
       0,
       {},
       {}},
      text_option("kernel", {"softmax", "relu"},
                  "what the features estimate: exp(h), or relu(omega.x) + 0.001"),
      text_option("form", {"exact", "published"},
                  "exact: no epsilon, stable for any input; published: the epsilon and stabilisers "
                  "of performer-pytorch, for parity, not causal, no gradient through them"),
      {"epsilon",
       OptionType::number,
       1e-4,
       "added to each feature of the published form",
       0,
       {},
       {}},
      text_option("projection", {"orthogonal", "iid", "none"},
                  "directions of the features: orthogonal in groups of head_dim, independent, or "
                  "the inputs themselves (relu only: Long Range Arena's default)"),
      text_option("norms", {"chi", "sqrt"},
                  "norms of the features' directions: as of normal vectors, or all sqrt(head_dim)"),
      {"features_of_each_head",
       OptionType::boolean,
       false,
       "whether each head draws features of its own",
       {},
       {},
       {}},
      {"redraw_every",
       OptionType::integer,
       std::int64_t{0},
       "training forwards after which features are drawn anew, from the seed; 0 = never",
       0,
       {},
       {}},
      chunk_option()};
}

Support supports(const Options& options, const Problem& problem) {
  if (options.text("form") == "published" && problem.pattern == Pattern::causal) {
    return Support::no(
        "performer: the published form is not causal, since its keys are scaled by a maximum over "
        "later keys too, which its epsilon lets through; use form exact");
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
  entry.differs_from = {{"performer-pytorch adds an epsilon to its features and scales the keys by "
                         "a maximum over all "
                         "tokens; here there is neither, so that the causal pattern is causal",
                         "form=published gives that form, bidirectional and cross"},
                        {"published code takes the signs of LAPACK's QR for its orthogonal "
                         "features, which biases the "
                         "kernel; here they are fixed",
                         "not offered: projection=iid has no QR"}};
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
