// Luna, Ma et al. 2021: L slots of a latent stream pack the tokens, and the tokens read the pack.
// W_c [C, C] is a parameter here. Causal, the stream does not change.
#include <cmath>

#include "attention/algorithms/slots/implementations.hpp"
#include "attention/entry_parts.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;
using slots::Call;
using slots::Form;
using slots::Weight;

bool is_composed(const Options& options) { return options.text("activation") == "latte_composed"; }

class Luna : public Mechanism {
 public:
  Luna(std::string name, Options chosen, Problem asked)
      : Mechanism(std::move(name), std::move(chosen), std::move(asked)) {
    if (problem.pattern == Pattern::causal) return;
    const std::int64_t width = problem.width();
    if (options.boolean("tied")) {
      add("weight_unpack", width);
      return;
    }
    add("weight_unpack_key", width);
    add("weight_unpack_value", problem.heads * problem.value_dim);
  }

  std::vector<Role> roles() const override {
    const bool tied = options.boolean("tied");
    const std::int64_t width = problem.head_dim;
    const bool causal = problem.pattern == Pattern::causal;
    const Feed feed = causal && is_composed(options) ? Feed::slice : Feed::projected;
    std::vector<Role> roles{{"latent_query", Source::latent_stream, width, feed},
                            {"query", Source::query_tokens, width},
                            {"pack_key", Source::key_tokens, width, feed}};
    if (causal) {
      roles.push_back({"key", Source::key_tokens, width, feed});
      if (!tied) roles.push_back({"value", Source::key_tokens, problem.value_dim, feed});
    } else if (!tied) {
      roles.push_back({"pack_value", Source::key_tokens, width});
    }
    return roles;
  }

  /// The published initialisation: Xavier uniform with gain 1/sqrt(2).
  void draw_parameters(std::uint64_t seed) override {
    const at::NoGradGuard no_grad;
    for (auto& item : named_parameters()) {
      const auto sizes = item.value().sizes().vec();
      const double bound = std::sqrt(3.0 / static_cast<double>(sizes[0] + sizes[1]));
      item.value().copy_(draw_uniform(seed, item.key(), sizes, -bound, bound, problem));
    }
  }

  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    const std::int64_t columns =
        problem.head_dim + (options.boolean("tied") ? 0 : problem.value_dim);
    return slots::empty_state(
        form(), {batch, problem.heads, options.integer("latents_per_head"), columns}, tensor);
  }

  double scale() const { return 1 / std::sqrt(static_cast<double>(problem.head_dim)); }

  /// The weights of the causal pattern.
  Form form() const {
    if (is_composed(options)) return {Weight::composed, 1};
    const bool elu = options.text("activation") == "elu1";
    return {elu ? Weight::elu_plus_one : Weight::softplus_b2, scale()};
  }

 private:
  void add(const std::string& name, std::int64_t columns) {
    const auto like =
        at::TensorOptions(scalar_type(problem.dtype)).device(c10::Device(problem.device));
    register_parameter(name, at::empty({problem.width(), columns}, like), problem.gradient);
  }
};

const Luna& luna_of(const Mechanism& mechanism) { return dynamic_cast<const Luna&>(mechanism); }

// ---- bidirectional and cross

/// The slots that no token reads, [B, 1, 1, L]: slot l of a sequence of l tokens or fewer.
Tensor hidden_slots(const Mechanism& mechanism, const Tensor& key_mask, std::int64_t keys) {
  const std::int64_t latents = mechanism.options.integer("latents_per_head");
  const bool dynamic = mechanism.options.boolean("dynamic_slots");
  if (!key_mask.defined() && (!dynamic || latents <= keys)) return {};
  const auto like = at::TensorOptions(at::kLong).device(
      key_mask.defined() ? key_mask.device() : c10::Device(mechanism.problem.device));
  const Tensor count = key_mask.defined() ? key_mask.sum(1) : at::full({1}, keys, like);
  // Without a token the pack is 0, so that reading it gives 0 in either case.
  const Tensor first = dynamic ? at::arange(latents, like) : at::zeros({latents}, like);
  return first.view({1, 1, 1, latents}) >= count.view({-1, 1, 1, 1});
}

/// The stream [B, L, H D] times a parameter, [B, H, L, w].
Tensor unpacked(const Mechanism& mechanism, const Tensor& stream, const char* name) {
  const Tensor weight = mechanism.named_parameters()[name].to(stream.scalar_type());
  const std::int64_t heads = mechanism.problem.heads;
  return at::matmul(stream, weight)
      .unflatten(2, at::IntArrayRef{heads, weight.size(1) / heads})
      .transpose(1, 2);
}

Mixed bidirectional(const Mechanism& mechanism, const Inputs& inputs) {
  const auto type = compute_type(inputs["query"].scalar_type());
  const double scale = luna_of(mechanism).scale();
  const bool tied = mechanism.options.boolean("tied");
  const auto shown = [&](const char* role) {
    return without_padding(inputs[role].to(type), inputs.key_mask);
  };
  const Tensor keys = shown("pack_key");
  const Tensor pack = at::matmul(slots::softmax_weights(inputs["latent_query"].to(type), keys,
                                                        scale, slots::hidden_keys(inputs.key_mask)),
                                 tied ? keys : shown("pack_value"));
  const Tensor stream = pack.transpose(1, 2).flatten(2);
  const Tensor read = unpacked(mechanism, stream, tied ? "weight_unpack" : "weight_unpack_key");
  const Tensor unread = hidden_slots(mechanism, inputs.key_mask, keys.size(2));
  const Tensor y = at::matmul(slots::softmax_weights(inputs["query"].to(type), read, scale, unread),
                              tied ? read : unpacked(mechanism, stream, "weight_unpack_value"));
  const auto given = inputs["query"].scalar_type();
  return {y.to(given), stream.to(given)};
}

Mixed tiled(const Mechanism& mechanism, const Inputs& inputs) {
  const double scale = luna_of(mechanism).scale();
  const bool tied = mechanism.options.boolean("tied");
  const Tensor& keys = inputs["pack_key"];
  const Tensor& values = inputs[tied ? "pack_key" : "pack_value"];
  const auto given = inputs["query"].scalar_type();
  const Tensor stream =
      softmax_tiled({inputs["latent_query"], keys, values, inputs.key_mask, scale})
          .transpose(1, 2)
          .flatten(2);
  const auto read = [&](const char* name) {
    return unpacked(mechanism, stream.to(compute_type(given)), name).to(given);
  };
  SoftmaxCall call{
      inputs["query"], read(tied ? "weight_unpack" : "weight_unpack_key"), {}, {}, scale};
  call.v = tied ? call.k : read("weight_unpack_value");
  const Tensor hidden = hidden_slots(mechanism, inputs.key_mask, keys.size(2));
  if (hidden.defined()) {
    call.key_mask = hidden.logical_not().flatten(1).expand({call.q.size(0), -1}).contiguous();
  }
  return {softmax_tiled(call), stream};
}

// ---- causal

Call call_of(const Mechanism& mechanism, const Inputs& inputs) {
  Call call{inputs["latent_query"], inputs["query"], inputs["pack_key"], inputs["key"], {}, {}};
  if (!mechanism.options.boolean("tied")) call.value = inputs["value"];
  return call;
}

// ---- costs

slots::Sizes sizes_of(const Options& options, const Problem& problem) {
  const bool tied = options.boolean("tied");
  return {problem, static_cast<double>(options.integer("latents_per_head")), tied, false};
}

/// `cost` of two softmaxes over all tokens and slots, and the product with W_c between them.
Cost with_unpacking(Cost cost, const slots::Sizes& n) {
  const Problem& problem = n.problem;
  const double unpacking = 2 * static_cast<double>(problem.batch * problem.width()) * n.latents *
                           static_cast<double>(problem.heads) * n.columns();
  cost.model_flops += unpacking;
  cost.executed_flops += unpacking;
  cost.minimal_bytes += static_cast<double>(problem.width() * problem.heads) * n.columns() *
                        static_cast<double>(bytes_of(problem.dtype));
  return cost;
}

Cost bidirectional_cost(const Options& options, const Problem& problem) {
  const auto n = sizes_of(options, problem);
  return with_unpacking(slots::bidirectional_cost(n), n);
}

Cost tiled_cost(const Options& options, const Problem& problem) {
  const auto n = sizes_of(options, problem);
  return with_unpacking(slots::tiled_cost(n), n);
}

Support supports(const Options& options, const Problem& problem) {
  if (options.boolean("tied") && problem.value_dim != problem.head_dim) {
    return Support::no(
        "luna: tied keys and values have one width; set value_dim to that of keys, or tied to "
        "false");
  }
  return unshared_heads("luna", problem);
}

Options derive(const Options& options, const Problem& problem) {
  if (is_composed(options) && !options.boolean("tied")) {
    throw UsageError(
        "luna: latte_composed uses the tokens themselves as keys and values, which ties them; set "
        "tied to true, or choose another activation");
  }
  return derive_latents("luna", options, problem, 32);
}

std::vector<Option> options() {
  return latents_options(
      {Option::boolean(
           "tied", true,
           "one projection for keys and values of the packing, and one of the unpacking, "
           "as published"),
       Option::boolean(
           "dynamic_slots", true,
           "a sequence of n tokens reads only its first n slots, as published; the causal "
           "pattern, where n is unknown, reads all"),
       Option::text(
           "activation", {"softplus_b2", "elu1", "latte_composed"},
           "omega of the causal pattern: log2(1 + 2^x) of the published code, elu(x) + 1, or "
           "softplus(elu(x) + 1) of unprojected, unscaled tokens as restated by Latte's "
           "paper"),
       chunk_option()});
}

}  // namespace

Entry luna() {
  Entry entry;
  entry.name = "luna";
  entry.title = "Luna: linear unified nested attention";
  entry.citation =
      "Ma, Kong, Wang, Zhou, May, Ma, Zettlemoyer 2021, Luna: Linear Unified Nested Attention, "
      "arXiv:2106.01540";
  entry.formula =
      "bidirectional, cross: P_l = sum_s softmax_s(scale p_l.c_s) c_s, heads side by side: the new "
      "stream\n"
      "  y_t = sum_l softmax_l(scale q_t.K_l) V_l,  K = V = P W_c (tied)\n"
      "causal: w_s,l = omega(scale p_l.pack_key_s),  a_t = scale / n_t sum_{s<=t} (q_t.k_s) w_s\n"
      "  y_t = 1 / n_t sum_{s<=t} (softmax(a_t).w_s) v_s,  v = k (tied), n_t the tokens seen";
  entry.options = options();
  entry.differs_from = {
      {"causal: n_t counts the real tokens up to t, without padding; the published packing ignores "
       "the "
       "key mask, so that padding is packed and counted",
       "without a key mask both are the same"}};
  // Values are also keys, packed weights of the causal pattern do not sum to one, and unpacking
  // mixes the heads of the pack.
  entry.claims.rows_sum_to_one = false;
  entry.claims.linear_in_value = false;
  entry.claims.last_row_agrees = false;
  entry.claims.heads_independent = false;
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = supports;
  entry.derive = derive;
  entry.make = maker<Luna>("luna");
  entry.implementations = slots::implementations(
      {"luna", [](const Mechanism& self) { return luna_of(self).form(); }, call_of, sizes_of,
       bidirectional, bidirectional_cost, tiled, tiled_cost});
  return entry;
}

}  // namespace attnbench::mechanisms
