// Linformer, Wang et al. 2020, equation 7: learnable matrices E and F over the positions project S
// keys and values to L of each.
#include <algorithm>
#include <cmath>

#include "attention/algorithms/slots/linformer.hpp"
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"
#include "attention/torch/cuda.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

// Positions per draw, so that E of a short sequence is the beginning of E of a long one.
constexpr std::int64_t kDrawnTogether = 1024;
// A normal distribution truncated at two standard deviations: the probability within, and the
// remaining standard deviation.
constexpr double kWithinTwo = 0.9544997361036416;
constexpr double kDeviationLeft = 0.8796256610342398;

class Linformer : public Mechanism {
 public:
  Linformer(const std::string& name, const Options& chosen, const Problem& asked)
      : Mechanism(name, chosen, asked) {
    const auto numbers = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
    std::vector<std::int64_t> shape{options.integer("projected_length"),
                                    options.integer("max_length")};
    if (options.boolean("per_head")) shape.insert(shape.begin(), problem.kv_heads);
    register_parameter("E", at::empty(shape, numbers), problem.gradient);
    if (!options.boolean("share_kv")) {
      register_parameter("F", at::empty(shape, numbers), problem.gradient);
    }
  }

  std::vector<Role> roles() const override {
    auto roles = query_key_value(problem);
    if (options.boolean("l2_input")) {
      for (Role& role : roles) role.feed = Feed::before;
    }
    return roles;
  }

  /// Tokens scaled to length 1, as in Latte's Linformer baseline.
  Tensor before(const Tensor& x, State*) override {
    const Tensor wide = x.to(compute_type(x.scalar_type()));
    return (wide / wide.norm(2, {-1}, true).clamp_min(1e-12)).to(x.scalar_type());
  }

  void draw_parameters(std::uint64_t seed) override {
    const at::NoGradGuard no_grad;
    const bool uniform = options.text("init") == "uniform";
    const double positions = static_cast<double>(options.integer("max_length"));
    const double heads = options.boolean("per_head") ? static_cast<double>(problem.kv_heads) : 1;
    for (auto& item : named_parameters()) {
      const Tensor drawn = drawn_between(seed, item.key(), item.value().sizes().vec());
      if (uniform) {
        const double size = 1 / std::sqrt(static_cast<double>(options.integer("projected_length")));
        item.value().copy_(drawn * size);
      } else {
        const double deviation = 1 / std::sqrt(heads * positions) / kDeviationLeft;
        item.value().copy_((drawn * kWithinTwo).erfinv() * (std::sqrt(2.0) * deviation));
      }
    }
  }

 private:
  /// Uniform numbers between -1 and 1, independent of max_length for each position.
  Tensor drawn_between(std::uint64_t seed, const std::string& name,
                       const std::vector<std::int64_t>& shape) const {
    Problem exact = problem;
    exact.dtype = Dtype::float64;
    exact.device = "cpu";
    const std::int64_t positions = shape.back();
    const std::int64_t rows = shape.size() == 3 ? shape[0] * shape[1] : shape[0];
    std::vector<Tensor> parts;
    for (std::int64_t begin = 0; begin < positions; begin += kDrawnTogether) {
      const Tensor part = draw_uniform(seed, name + " from " + std::to_string(begin),
                                       {kDrawnTogether, rows}, -1, 1, exact);
      parts.push_back(part.narrow(0, 0, std::min(kDrawnTogether, positions - begin)));
    }
    return at::cat(parts).transpose(0, 1).reshape(shape);
  }
};

/// Keys and values projected to [B, G, L, w], in the dtype of computation.
struct Projected {
  Tensor keys, values;
};

/// With `in_kernels` by a kernel on the CPU if it supports that, and on CUDA by cuBLAS in the dtype
/// of the inputs, as the softmax kernel expects.
Projected projected(const Mechanism& mechanism, const Inputs& inputs, bool in_kernels) {
  const auto parameters = mechanism.named_parameters();
  const Tensor* values_by = parameters.find("F");
  if (values_by == nullptr) values_by = parameters.find("E");
  const auto given = inputs["query"].scalar_type();
  const auto type = in_kernels && inputs["query"].is_cuda() ? given : compute_type(given);
  const auto project = [&](const Tensor& by, const Tensor& x) {
    return linformer::projected(by, x, inputs.key_mask, type, in_kernels);
  };
  return {project(parameters["E"], inputs["key"]), project(*values_by, inputs["value"])};
}

Mixed mix_composite(Mechanism& mechanism, const Inputs& inputs, State* state) {
  if (state) throw UnsupportedError("linformer has no decoding state");
  const Projected slots = projected(mechanism, inputs, false);
  const std::int64_t groups = slots.keys.size(1);
  const Tensor& query = inputs["query"];
  const Tensor q = (query.to(slots.keys.scalar_type()) * scale_of(mechanism))
                       .unflatten(1, at::IntArrayRef{groups, query.size(1) / groups});
  const Tensor scores = at::matmul(q, slots.keys.unsqueeze(2).transpose(-2, -1));
  const Tensor output = at::matmul(at::softmax(scores, -1), slots.values.unsqueeze(2));
  return {output.flatten(1, 2).to(query.scalar_type()), {}};
}

Mixed mix_tiled(Mechanism& mechanism, const Inputs& inputs, State* state) {
  if (state) throw UnsupportedError("linformer has no decoding state");
  const Projected slots = projected(mechanism, inputs, true);
  const Tensor& query = inputs["query"];
  const SoftmaxCall call{
      query.to(slots.keys.scalar_type()), slots.keys, slots.values, {}, scale_of(mechanism)};
  return {softmax_tiled(call).to(query.scalar_type()), {}};
}

Implementation composite() {
  return {.name = "composite",
          .title = "projections and a T x L softmax in tensor operations",
          .mix = mix_composite,
          .cost = linformer::composite_cost,
          .growth = {.time_in_latents = 1, .workspace_in_latents = 1}};
}

Implementation tiled() {
  return {.name = "tiled",
          .title = "projections, then the tiled softmax over the projected keys",
          .supports =
              [](const Options& options, const Problem& problem) {
                return tiled_supports(problem, linformer::tiled_sizes(options, problem));
              },
          .mix = mix_tiled,
          .cost = linformer::tiled_cost,
          .growth = {.workspace_in_length = 0, .time_in_latents = 1, .workspace_in_latents = 1},
          .rank = 10};
}

/// Under the name of the other mechanisms' kernels.
Implementation fused() {
  Implementation implementation = tiled();
  implementation.name = "fused";
  implementation.title = "projections by cuBLAS, then the tiled softmax on a CUDA device";
  implementation.supports = [tiles = implementation.supports](const Options& options,
                                                              const Problem& problem) {
    if (!is_cuda(problem.device)) return Support::no("on the CPU the kernel is called tiled");
    return tiles(options, problem);
  };
  implementation.rank = 20;
  return implementation;
}

// ---- the entry

std::vector<Option> options() {
  return {
      Option::integer("projected_length", 256,
                      "L: keys and values of each head after the projection", 1),
      Option::integer("max_length", 0,
                      "positions of E and F; shorter inputs use the first of them; 0 = the keys",
                      0),
      Option::boolean("share_kv", false, "E projects the values, too"),
      Option::boolean("per_head", false, "each head has its own E and F"),
      Option::text("init", {"uniform", "lecun_normal"},
                   "uniform: between -1/sqrt(L) and 1/sqrt(L); lecun_normal: of variance 1 over "
                   "the positions, times the heads with per_head, truncated at two deviations"),
      Option::boolean("l2_input", false,
                      "tokens are scaled to length 1 before they are projected to queries, keys "
                      "and values"),
      scale_option()};
}

Support supports(const Options& options, const Problem& problem) {
  if (problem.pattern == Pattern::causal) {
    return Support::no(
        "causal is undefined, its projection mixes all positions; choose "
        "bidirectional or cross");
  }
  const std::int64_t longest = options.integer("max_length");
  if (longest != 0 && problem.key_length > longest) {
    return Support::no(std::to_string(problem.key_length) +
                       " keys are more than the positions of E and F; set max_length, now " +
                       std::to_string(longest) + ", to as many, or to 0");
  }
  if (problem.pattern == Pattern::cross && options.boolean("l2_input")) {
    return Support::no(
        "l2_input scales the tokens of one sequence, cross has two; set it to false");
  }
  return {};
}

Options derive(const Options& options, const Problem& problem) {
  Options derived = options;
  if (options.integer("max_length") == 0) derived.set("max_length", problem.key_length);
  return derived;
}

}  // namespace

Entry linformer() {
  Entry entry;
  entry.name = "linformer";
  entry.title = "Linformer: keys and values projected along the sequence";
  entry.citation =
      "Wang, Li, Khabsa, Fang, Ma 2020, Linformer: Self-Attention with Linear Complexity, "
      "arXiv:2006.04768";
  entry.formula =
      "y_t = sum_l softmax_l(scale q_t.(E K)_l) (F V)_l,  E and F learnable matrices over the "
      "positions";
  entry.options = options();
  entry.claims.rows_sum_to_one = false;  // over the projected keys, not over the keys
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::bidirectional, Pattern::cross};
  entry.supports = supports;
  entry.derive = derive;
  entry.make = maker<Linformer>("linformer");
  entry.implementations = {composite(), tiled(), fused()};
  return entry;
}

}  // namespace attnbench::mechanisms
