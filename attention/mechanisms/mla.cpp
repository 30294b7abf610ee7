// Multi-head latent attention, DeepSeek-V2 (2024), section 2.1: keys and values of all heads are
// up-projections of one latent vector per token, beside a rotary key that the heads share, so that
// a cache holds latents and rotary keys alone. With several latents, each of a group of heads:
// grouped latent attention, Zadouri et al. 2025.
#include <algorithm>
#include <cmath>
#include <functional>

#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"
#include "attention/torch/draw.hpp"
#include "attention/torch/product.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

/// As many key heads as heads, the harness's default, leaves nothing to share: it means the one
/// latent of the published mechanism.
std::int64_t latent_heads(const Problem& problem) {
  return problem.kv_heads == problem.heads ? 1 : problem.kv_heads;
}

Problem with_latent_heads(Problem problem) {
  problem.kv_heads = latent_heads(problem);
  return problem;
}

class Mla : public Mechanism {
 public:
  Mla(const std::string& name, const Options& chosen, const Problem& asked)
      : Mechanism(name, chosen, with_latent_heads(asked)),
        latent(options.integer("latent")),
        rotary(options.integer("rotary")),
        content(problem.head_dim - rotary) {
    const auto type = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
    const auto projection = [&](const char* parameter, std::int64_t width) {
      return register_parameter(parameter, at::zeros({problem.heads, latent, width}, type),
                                problem.gradient);
    };
    key_up = projection("key_up", content);
    value_up = projection("value_up", problem.value_dim);
  }

  /// The last `rotary` numbers of a query meet the rotary key, the others the decompressed one.
  std::vector<Role> roles() const override {
    std::vector<Role> roles{{"query", Source::query_tokens, problem.head_dim},
                            {"latent", Source::key_tokens, latent}};
    if (rotary > 0) roles.push_back({"key_rotary", Source::key_tokens, rotary});
    return roles;
  }

  /// Keys and values of variance 1 for latents of variance 1.
  void draw_parameters(std::uint64_t seed) override {
    const at::NoGradGuard no_grad;
    const double deviation = 1 / std::sqrt(static_cast<double>(latent));
    for (auto& item : named_parameters()) {
      item.value().copy_(
          draw_normal(seed, item.key(), item.value().sizes().vec(), deviation, problem));
    }
  }

  /// Latents and rotary keys side by side, as the absorbed form reads them: a step copies its own
  /// tokens alone.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    State state;
    state.tensors["latent"] =
        at::zeros({batch, problem.kv_heads, capacity, latent + rotary}, tensor);
    return state;
  }

  const std::int64_t latent;   ///< numbers of a latent
  const std::int64_t rotary;   ///< of a rotary key
  const std::int64_t content;  ///< of a decompressed key, beside the rotary one
  Tensor key_up;               ///< [H, latent, content], the paper's W^UK
  Tensor value_up;             ///< [H, latent, Dv], W^UV
};

const Mla& mla_of(const Mechanism& mechanism) { return dynamic_cast<const Mla&>(mechanism); }

/// x [B, H, T, w] times the weights [H, w, v] of each head: [B, H, T, v].
Tensor times_weights(const Tensor& x, const Tensor& weights) {
  return product(x.transpose(0, 1).flatten(1, 2), weights)
      .unflatten(1, at::IntArrayRef{x.size(0), x.size(2)})
      .transpose(0, 1);
}

/// Latents [B, G, S, w] times the weights [H, w, v] of the heads that share them: [B, H, S, v]. The
/// weights of a group stand side by side in one product, so that latents are not copied.
Tensor decompressed(const Tensor& latents, const Tensor& weights) {
  const std::int64_t groups = latents.size(1);
  const std::int64_t sharing = weights.size(0) / groups;
  const Tensor together = weights.unflatten(0, at::IntArrayRef{groups, sharing})
                              .transpose(1, 2)
                              .flatten(2);  // [G, w, H / G v]
  return times_weights(latents, together)
      .unflatten(3, at::IntArrayRef{sharing, weights.size(2)})
      .transpose(2, 3)
      .flatten(1, 2);
}

/// A call without queries, keys and values, whose keys are latents and rotary keys side by side
/// [B, G, S, latent + rotary], with zeros for padding; those of a state come first, and the new
/// ones are stored there.
SoftmaxCall compressed_call(const Mla& self, const Inputs& inputs, State* state) {
  SoftmaxCall call;
  call.k = inputs["latent"];
  if (self.rotary > 0) call.k = at::cat({call.k, inputs["key_rotary"]}, -1);
  call.k = without_padding(call.k, inputs.key_mask);
  call.key_mask = inputs.key_mask;
  if (state != nullptr) take_into_cache("mla", *state, {{"latent", &call.k}}, call.key_mask);
  call.scale = scale_of(self);
  if (self.problem.pattern == Pattern::causal) {
    call.right = 0;
    call.offset = call.key_length() - inputs["query"].size(2);
  }
  return call;
}

/// Keys and values of every head.
SoftmaxCall decompressed_call(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  const Mla& self = mla_of(mechanism);
  SoftmaxCall call = compressed_call(self, inputs, state);
  const auto type = call.k.scalar_type();
  const Tensor latents = call.k.narrow(3, 0, self.latent);
  const Tensor shared = call.k.narrow(3, self.latent, self.rotary);
  call.q = inputs["query"];
  call.v = decompressed(latents, self.value_up.to(type));
  call.k = decompressed(latents, self.key_up.to(type));
  if (self.rotary > 0) {
    call.k = at::cat({call.k, repeated_heads(shared, self.problem.heads)}, -1);
  }
  return call;
}

/// Queries projected to the latents, which are keys and values: q.(W c) = (W^T q).c. The output is
/// still to be projected by W^UV.
SoftmaxCall absorbed_call(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  const Mla& self = mla_of(mechanism);
  SoftmaxCall call = compressed_call(self, inputs, state);
  const Tensor& query = inputs["query"];
  call.v = call.k.narrow(3, 0, self.latent);
  call.q = times_weights(query.narrow(3, 0, self.content),
                         self.key_up.to(query.scalar_type()).transpose(1, 2));
  if (self.rotary > 0) {
    call.q = at::cat({call.q, query.narrow(3, self.content, self.rotary)}, -1);
  }
  return call;
}

Mixed mix_absorbed(Mechanism& mechanism, const Inputs& inputs, State* state) {
  const Tensor mixed = softmax_composite(absorbed_call(mechanism, inputs, state));
  return {times_weights(mixed, mla_of(mechanism).value_up.to(mixed.scalar_type())), {}};
}

// ---- implementations

Window band_of(const Options&, const Problem& problem) {
  return {unlimited, problem.pattern == Pattern::causal ? 0 : unlimited};
}

BandedMechanism banded(std::function<SoftmaxCall(const Mechanism&, const Inputs&, State*)> call) {
  return {band_of, std::move(call),
          [](const Options&, const Problem& problem) { return problem.length; }};
}

/// The problem of the softmax over decompressed keys, and of that over latents.
Problem decompressed_problem(const Options&, Problem problem) {
  problem.kv_heads = problem.heads;
  return problem;
}

Problem absorbed_problem(const Options& options, Problem problem) {
  problem.kv_heads = latent_heads(problem);
  problem.value_dim = options.integer("latent");
  problem.head_dim = problem.value_dim + options.integer("rotary");
  return problem;
}

/// Sizes of tensors, in numbers.
struct MlaSizes {
  MlaSizes(const Options& options, const Problem& problem) {
    const auto real = [](std::int64_t count) { return static_cast<double>(count); };
    const double heads = real(problem.batch * problem.heads);
    const double latent = real(options.integer("latent"));
    const double content = real(problem.head_dim - options.integer("rotary"));
    const double values = real(problem.value_dim);
    compressed = real(problem.batch * latent_heads(problem) * problem.key_length) *
                 (latent + real(options.integer("rotary")));
    queries = heads * real(problem.length) * real(problem.head_dim);
    outputs = heads * real(problem.length) * values;
    decompressed = heads * real(problem.key_length) * (real(problem.head_dim) + values);
    absorbed = heads * real(problem.length) * latent;
    weights = real(problem.heads) * latent * (content + values);
    largest_weight = real(problem.heads) * latent * std::max(content, values);
    decompressing_flops = 2 * real(problem.batch * problem.key_length) * weights;
    absorbing_flops = 2 * real(problem.batch * problem.length) * weights;
  }
  double compressed, queries, outputs, decompressed, absorbed;
  double weights, largest_weight;  ///< of both, and of the larger one
  double decompressing_flops, absorbing_flops;
};

/// What does not depend on the form. The algebraic minimum decompresses each latent once.
Cost common_cost(const MlaSizes& sizes, const Problem& problem) {
  const auto bytes = static_cast<double>(bytes_of(problem.dtype));
  const double pairs = static_cast<double>(problem.batch * problem.heads) *
                       static_cast<double>(visible_pairs(problem));
  Cost cost;
  cost.model_flops = 2 * static_cast<double>(problem.head_dim + problem.value_dim) * pairs +
                     sizes.decompressing_flops;
  cost.minimal_bytes = (sizes.queries + sizes.compressed + sizes.weights + sizes.outputs) * bytes;
  cost.state_bytes = sizes.compressed * bytes;
  return cost;
}

/// `softmax` as a form of mla: asked about `mixed`, the problem of its softmax, and its cost with
/// that of what comes before it.
template <class Around>
Implementation form_of(Implementation softmax, Problem (*mixed)(const Options&, Problem),
                       const Around& around) {
  Implementation form = std::move(softmax);
  form.supports = [mixed, supports = form.supports](const Options& options,
                                                    const Problem& problem) {
    return supports(options, mixed(options, problem));
  };
  form.cost = [mixed, around, cost_of = form.cost](const Options& options, const Problem& problem) {
    const MlaSizes sizes(options, problem);
    const Cost common = common_cost(sizes, problem);
    Cost cost = cost_of(options, mixed(options, problem));
    around(cost, sizes, static_cast<double>(bytes_of(problem.dtype)));
    cost.model_flops = common.model_flops;
    cost.minimal_bytes = common.minimal_bytes;
    cost.state_bytes = common.state_bytes;
    return cost;
  };
  form.growth.workspace_in_head_dim = {};  // of keys, or of scores, as sizes have it
  return form;
}

/// Decompressed keys and values are in memory, whole, beside what the softmax takes.
Implementation decompressed_form(Implementation softmax, const std::string& title) {
  Implementation form = form_of(
      std::move(softmax), decompressed_problem,
      [](Cost& cost, const MlaSizes& sizes, double bytes) {
        cost.executed_flops += sizes.decompressing_flops;
        cost.workspace_bytes = std::max(cost.workspace_bytes, sizes.largest_weight * bytes) +
                               (sizes.compressed + sizes.decompressed) * bytes;
        cost.saved_bytes += (sizes.compressed + sizes.decompressed + sizes.weights) * bytes;
      });
  form.title = title;
  form.growth.workspace_in_length = std::max(1.0, form.growth.workspace_in_length);
  return form;
}

/// A form whose steps are absorbed: to decompress a whole state for a few queries would take longer
/// than they do.
Implementation stepping(Implementation form) {
  form.mix = [mix = form.mix](Mechanism& mechanism, const Inputs& inputs, State* state) {
    const bool step = state != nullptr && inputs["query"].size(2) < kShortStep;
    return step ? mix_absorbed(mechanism, inputs, state) : mix(mechanism, inputs, state);
  };
  return form;
}

Implementation absorbed() {
  Implementation form = form_of(composite_softmax(banded(absorbed_call)), absorbed_problem,
                                [](Cost& cost, const MlaSizes& sizes, double bytes) {
                                  cost.executed_flops += sizes.absorbing_flops;
                                  cost.workspace_bytes +=
                                      (sizes.compressed + sizes.absorbed) * bytes;
                                  cost.saved_bytes += (sizes.compressed + sizes.absorbed) * bytes;
                                });
  form.name = "absorbed";
  form.title =
      "up-projections absorbed into queries and outputs, whole score matrices against the latents";
  form.mix = mix_absorbed;
  form.rank = -1;
  return form;
}

std::vector<Implementation> implementations() {
  const BandedMechanism softmax = banded(decompressed_call);
  std::vector<Implementation> all{
      decompressed_form(
          composite_softmax(softmax),
          "keys and values of all heads decompressed, whole score matrices in tensor operations"),
      absorbed(),
      stepping(
          decompressed_form(chunked_softmax(softmax),
                            "keys and values decompressed, softmax in chunks; steps absorbed")),
      stepping(decompressed_form(
          tiled_softmax(softmax),
          "keys and values decompressed, softmax in one kernel; steps absorbed"))};
  const std::vector<Implementation> library = sdpa_softmax(softmax);
  if (!library.empty()) {
    all.push_back(stepping(decompressed_form(
        library.front(),
        "keys and values decompressed, LibTorch's scaled_dot_product_attention; steps absorbed")));
  }
  return all;
}

// ---- the entry

/// A third of head_dim, 64 of 192, in pairs; at least one where it leaves a number.
std::int64_t published_rotary(std::int64_t head_dim) {
  return head_dim < 3 ? 0 : 2 * std::max<std::int64_t>(1, head_dim / 6);
}

Options derive(const Options& options, const Problem& problem) {
  Options derived = options;
  const std::int64_t said = options.integer("rotary");
  const std::int64_t rotary = said >= 0 ? said : published_rotary(problem.head_dim);
  if (rotary >= problem.head_dim) {
    throw UsageError("mla: rotary " + std::to_string(rotary) + " of head_dim " +
                     std::to_string(problem.head_dim) +
                     " leaves a query no numbers for the latents; expected less than head_dim");
  }
  derived.set("rotary", rotary);
  if (options.integer("latent") == 0) {
    const std::int64_t all = 4 * (problem.head_dim - rotary);
    derived.set("latent", std::max<std::int64_t>(1, all / latent_heads(problem)));
  }
  return derived;
}

}  // namespace

Entry mla() {
  Entry entry;
  entry.name = "mla";
  entry.title =
      "Multi-head latent attention (MLA): keys and values from a latent that heads share; with "
      "kv_heads between 1 and heads, grouped latent attention";
  entry.citation =
      "DeepSeek-AI 2024, DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts "
      "Language Model, arXiv:2405.04434, section 2.1; groups: Zadouri, Strauss, Dao 2025, "
      "Hardware-Efficient Attention for Fast Decoding, arXiv:2505.21487";
  entry.formula =
      "y_t,h = sum_s softmax_s(scale (q_t,h.U_h c_s + p_t,h.r_s)) V_h c_s,  over the tokens s that "
      "t sees\n"
      "c_s the latent and r_s the rotary key of the group of head h; (q_t,h, p_t,h) the query; "
      "U_h, "
      "V_h learned";
  entry.options = chunk_options(
      {Option::integer("latent", 0,
                       "numbers of a token's latent; 0 = 4 (head_dim - rotary) / groups, as "
                       "published: 512 for a head_dim of 128 + 64",
                       0),
       Option::integer("rotary", -1,
                       "the last numbers of a query, which meet the shared rotary key and are what "
                       "rotary positions rotate; 0 = none, -1 = a third of head_dim in pairs, one "
                       "at least, as published: 64 of 192",
                       -1),
       scale_option()},
      256, 1024);
  entry.differs_from = {
      {"a published layer has one latent for all heads, which kv_heads = 1 says",
       "so does kv_heads = heads, the default; a divisor between gives each group of heads a "
       "latent "
       "of its own"},
      {"DeepSeek rotates the rotary key and the last numbers of each query",
       "positions=rotary does; without, they are products like the others, as in Kimi Linear"},
      {"published queries come from a latent of their own (query compression)",
       "not available: the query is projected from the token, which changes neither keys nor "
       "state"},
      {"the published latent is normalised (RMSNorm) before its up-projections", "not available"},
      {"long-context models of DeepSeek slow their rotations down (YaRN) and enlarge the scale",
       "scale takes that factor; the rotations are not available"},
      {"grouped latent attention has one rotary key for all groups",
       "not available: each group has its own"}};
  // The values are latents, which are keys as well.
  entry.claims.rows_sum_to_one = false;
  entry.claims.linear_in_value = false;
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.derive = derive;
  entry.make = maker<Mla>("mla");
  entry.implementations = implementations();
  return entry;
}

}  // namespace attnbench::mechanisms
