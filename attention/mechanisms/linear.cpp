// Linear attention, Katharopoulos et al. 2020, with a choice of phi. The values have an additional
// column of ones, so that S and z are one matrix and both sums one product. Of exponential features
// the logarithms are mixed (attention/algorithms/feature_mix/feature_mix.hpp), without an epsilon.
#include <limits>

#include "attention/algorithms/feature_mix/feature_mix.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;
using causal_product::Feature;
using feature_mix::Way;

constexpr double kUsualEpsilon = 1e-6;

/// Those of taylor2 of 64 numbers: with more, the state of one head outgrows a core's cache.
constexpr std::int64_t kMostFeatures = 1 + 64 + 64 * 65 / 2;
constexpr double kLinearInfinity = std::numeric_limits<double>::infinity();

bool is_elu(const Options& options) { return options.text("feature") == "elu1"; }
bool is_hedgehog(const Options& options) { return options.text("feature") == "hedgehog"; }
/// Exponentials of the inputs, or of a map of them.
bool has_logarithms(const Options& options) {
  return options.text("feature") == "exp" || is_hedgehog(options);
}

Expansion expansion_of(const Options& options) {
  if (options.text("feature") == "polynomial") return Expansion::square;
  if (options.text("feature") == "taylor2") return Expansion::taylor2;
  return Expansion::none;
}

std::int64_t features_of(const Options& options, const Problem& problem) {
  if (is_hedgehog(options)) return 2 * problem.head_dim;
  Features map;
  map.expansion = expansion_of(options);
  return map.count(problem.head_dim);
}

/// Parameters of the feature hedgehog: `query_map` and `key_map` [H, D, D], the identity at first.
class Linear : public Mechanism {
 public:
  Linear(const std::string& name, const Options& chosen, const Problem& asked)
      : Mechanism(name, chosen, asked) {
    if (!is_hedgehog(options)) return;
    const auto numbers = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
    for (const char* map : {"query_map", "key_map"}) {
      register_parameter(map,
                         at::empty({problem.heads, problem.head_dim, problem.head_dim}, numbers),
                         problem.gradient);
    }
  }

  std::vector<Role> roles() const override { return query_key_value(problem); }

  void draw_parameters(std::uint64_t) override {
    const at::NoGradGuard no_grad;
    for (auto& item : named_parameters()) {
      item.value().copy_(at::eye(problem.head_dim, at::kDouble));
    }
  }

  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    return feature_mix::empty_state(problem, batch, features_of(options, problem),
                                    has_logarithms(options), tensor);
  }
};

/// log softmax(W x) and log softmax(-W x), of x [B, H, T, D] and W [H, D, D].
Tensor hedgehog_logarithms(const Tensor& x, const Tensor& map) {
  const auto type = compute_type(x.scalar_type());
  const Tensor mapped = at::matmul(x.to(type), map.to(type).transpose(-2, -1));
  return at::cat({at::log_softmax(mapped, -1), at::log_softmax(-mapped, -1)}, -1);
}

/// At padding keys of -inf, whose features are 0, and values of 0.
feature_mix::Call call_of(const Mechanism& mechanism, const Inputs& inputs) {
  const Options& options = mechanism.options;
  Tensor query = inputs["query"], key = inputs["key"];
  if (is_hedgehog(options)) {
    const auto maps = mechanism.named_parameters();
    query = hedgehog_logarithms(query, maps["query_map"]);
    key = hedgehog_logarithms(without_padding(key, inputs.key_mask), maps["key_map"]);
  }
  feature_mix::Call call{query, without_padding(key, inputs.key_mask, -kLinearInfinity),
                         without_padding(inputs["value"], inputs.key_mask)};
  call.logarithms = has_logarithms(options);
  call.query.features.expansion = call.key.features.expansion = expansion_of(options);
  const Feature feature = is_elu(options)                     ? Feature::elu_plus_one
                          : options.text("feature") == "relu" ? Feature::relu
                                                              : Feature::identity;
  call.form = {feature, true, options.number("epsilon")};
  return call;
}

Mixed mix_linear(Way way, Mechanism& mechanism, const Inputs& inputs, State* state) {
  const at::AutoGradMode record(state == nullptr && at::GradMode::is_enabled());
  const feature_mix::Call call = call_of(mechanism, inputs);
  if (mechanism.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError("linear: only the causal pattern continues from a state");
    return {feature_mix::whole(way, call), {}};
  }
  const std::int64_t chunk = mechanism.options.integer("chunk");
  return {state != nullptr ? feature_mix::continued(way, call, chunk, *state)
                           : feature_mix::causal(way, call, chunk),
          {}};
}

// ---- costs

Cost elu_cost(Way way, const Options& options, const Problem& problem) {
  const auto sizes =
      causal_product::sizes_of(problem, static_cast<double>(features_of(options, problem)));
  if (way == Way::composite) return causal_product::materialised_cost(sizes);
  if (way == Way::scan) return causal_product::scan_cost(sizes);
  if (way == Way::fused) return causal_product::fused_cost(sizes, problem);
  return causal_product::chunked_cost(sizes, static_cast<double>(options.integer("chunk")));
}

Cost linear_cost(Way way, const Options& options, const Problem& problem) {
  if (is_elu(options)) return elu_cost(way, options, problem);
  feature_mix::Sizes of;
  of.n = causal_product::sizes_of(problem, static_cast<double>(features_of(options, problem)));
  of.dim = static_cast<double>(problem.head_dim);
  of.logarithms = has_logarithms(options);
  of.chunk = static_cast<double>(options.integer("chunk"));
  const double tokens = of.n.heads * (of.n.queries + of.n.keys);
  if (!of.logarithms) of.making = tokens * of.n.features;
  Cost cost = feature_mix::cost(way, of, problem);
  if (!is_hedgehog(options)) return cost;
  // Both products with the maps, and their two softmaxes, of all tokens before the mix.
  const double making = tokens * (2 * of.dim * of.dim + 4 * of.n.features);
  cost.backward_flops =
      (cost.backward_flops * cost.executed_flops + 2 * making) / (cost.executed_flops + making);
  cost.model_flops += making;
  cost.executed_flops += making;
  cost.exponentials += tokens * of.n.features;
  cost.minimal_bytes += 2 * static_cast<double>(problem.heads) * of.dim * of.dim * of.n.bytes;
  const double made = tokens * (of.n.features + of.dim) * of.n.wide_bytes();
  cost.workspace_bytes += made;
  cost.saved_bytes += made + tokens * of.n.features * of.n.wide_bytes();
  return cost;
}

// ---- implementations

/// `base` is the growth with features of elu.
Implementation implementation_of(Way way, const std::string& name, const std::string& title,
                                 const Growth& base) {
  Implementation implementation = causal_implementation(
      "linear", name, title, [way](Mechanism& mechanism, const Inputs& inputs, State* state) {
        return mix_linear(way, mechanism, inputs, state);
      });
  implementation.cost = [way](const Options& options, const Problem& problem) {
    return linear_cost(way, options, problem);
  };
  implementation.growth = base;
  implementation.growth_with = [way, base](const Options& options) {
    Growth growth = base;
    if (expansion_of(options) != Expansion::none) {  // about head_dim^2 / 2 features
      growth.time_in_head_dim += 1;
      if (growth.workspace_in_head_dim) *growth.workspace_in_head_dim += 1;
    }
    if (is_hedgehog(options)) growth.workspace_in_length = 1;  // its features are made before
    const bool parts = !is_elu(options) && options.text("feature") != "exp";
    if (way == Way::fused && parts) growth.from_length = kGrowingTogether;
    return growth;
  };
  return implementation;
}

std::vector<Implementation> linear_implementations() {
  // There are as many features as head_dim.
  Implementation composite = implementation_of(
      Way::composite, "composite", "cumulative sums of all states at once, in tensor operations",
      {.time_in_head_dim = 2, .workspace_in_head_dim = 2});
  composite.supports = supports_all;
  const Growth in_parts{.workspace_in_length = 0, .time_in_head_dim = 2};
  Implementation scan =
      implementation_of(Way::scan, "scan", "token by token, as a recurrent network", in_parts);
  scan.rank = -1;
  Implementation chunked =
      implementation_of(Way::chunked, "chunked", "matrix products over chunks of tokens", in_parts);
  chunked.rank = 10;
  Implementation fused = implementation_of(
      Way::fused, "fused", "one kernel: a token scan over tiles of the state", in_parts);
  fused.supports = [](const Options& options, const Problem& problem) {
    const Support causal = has_logarithms(options) ? Support() : only_causal("linear", problem);
    if (!causal) return causal;
    return feature_mix::fused_supports("linear", problem, features_of(options, problem),
                                       has_logarithms(options));
  };
  fused.rank = 20;
  return {composite, scan, chunked, fused};
}

// ---- the entry

Support linear_supports(const Options& options, const Problem& problem) {
  const std::int64_t features = features_of(options, problem);
  if (expansion_of(options) != Expansion::none && features > kMostFeatures) {
    return Support::no("linear: the feature " + options.text("feature") + " makes " +
                       std::to_string(features) + " features of queries and keys of " +
                       std::to_string(problem.head_dim) + " numbers; at most " +
                       std::to_string(kMostFeatures) +
                       " are supported: choose more heads or a smaller key_dim");
  }
  return unshared_heads("linear", problem);
}

Options linear_derive(const Options& options, const Problem&) {
  Options derived = options;
  if (!has_logarithms(options)) return derived;
  const double epsilon = options.number("epsilon");
  if (epsilon != 0 && epsilon != kUsualEpsilon) {
    throw UsageError("linear: the feature " + options.text("feature") +
                     " has no epsilon, since its logarithms are mixed; leave epsilon out");
  }
  derived.set("epsilon", 0.0);
  return derived;
}

}  // namespace

Entry linear() {
  Entry entry;
  entry.name = "linear";
  entry.title = "Linear attention, elu(x) + 1 or another feature map";
  entry.citation =
      "Katharopoulos, Vyas, Pappas, Fleuret 2020, Transformers are RNNs: Fast Autoregressive "
      "Transformers with Linear Attention, arXiv:2006.16236; taylor2: Arora et al. 2024, Simple "
      "linear attention language models balance the recall-throughput tradeoff (Based), "
      "arXiv:2402.18668; hedgehog: Zhang, Bhatia, Kumbong, Re 2024, The Hedgehog & the Porcupine, "
      "arXiv:2402.04347";
  entry.formula =
      "y_t = phi(q_t)^T S_t / (phi(q_t).z_t + epsilon)\n"
      "S_t = sum_s phi(k_s) v_s^T,  z_t = sum_s phi(k_s),  over the tokens s that t sees";
  entry.differs_from = {
      {"the paper's equations have no epsilon, which weighs where features are small: one token "
       "whose "
       "query and key are -8 in all of 64 channels has 0.88 of the definition's output, of -10 "
       "0.12",
       "epsilon=0 gives the paper's form, and 0 where no token is visible; exp and hedgehog have "
       "none"},
      {"Latte v2's undirected model has as many latents as it likes; exp has one for each number "
       "of a query",
       "in models key_dim says their number"},
      {"Based mixes queries and keys of 16 numbers, beside layers of windows and of convolutions",
       "key_dim=16 in models; windows are not available; the state has each product x_i x_j once, "
       "which gives the bytes of Based's Figure 2"},
      {"Hedgehog's maps learn to imitate a softmax before they are used, here with the model; "
       "flash-linear-attention's have a bias, are the same for all heads and end in one softmax "
       "over both signs, of 2 W x",
       "not available"}};
  entry.options = {
      Option::text(
          "feature", {"elu1", "exp", "relu", "polynomial", "taylor2", "hedgehog"},
          "phi: elu(x) + 1; exp(x), Latte v2's undirected model; relu(x); all x_i x_j, for "
          "(q.k)^2; Based's 1, x and x_i x_j, for 1 + z + z^2 / 2 with z = q.k / sqrt(D); "
          "softmax(W x) and softmax(-W x) with a learned W for queries and one for keys"),
      Option::number("epsilon", kUsualEpsilon,
                     "added to the sum of weights; exp and hedgehog have none", 0),
      chunk_option()};
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = linear_supports;
  entry.derive = linear_derive;
  entry.make = maker<Linear>("linear");
  entry.implementations = linear_implementations();
  return entry;
}

}  // namespace attnbench::mechanisms
