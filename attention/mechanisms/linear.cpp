// Linear attention with phi(x) = elu(x) + 1, Katharopoulos et al. 2020:
//   y_t = phi(q_t)^T S_t / (phi(q_t).z_t + epsilon),  S_t = sum phi(k_s) v_s^T,  z_t = sum
//   phi(k_s).
// The values carry a column of ones, so that S and z are one matrix and both sums one product.
#include <algorithm>

#include "attention/causal_product.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

class Linear : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override {
    return {{"query", Source::query_tokens, problem.head_dim},
            {"key", Source::key_tokens, problem.head_dim},
            {"value", Source::key_tokens, problem.value_dim}};
  }

  /// In float32 where the inputs have 16 bits: sums over a long past need the mantissa.
  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    const bool narrow = tensor.dtype() == at::kHalf || tensor.dtype() == at::kBFloat16;
    const auto wide = narrow ? tensor.dtype(at::kFloat) : tensor;
    State state;
    state.tensors["sum"] =
        at::zeros({batch, problem.heads, problem.head_dim, problem.value_dim}, wide);
    state.tensors["normaliser"] = at::zeros({batch, problem.heads, problem.head_dim}, wide);
    return state;
  }
};

/// elu(x) + 1, without the rounding of e^x - 1 + 1.
Tensor feature(const Tensor& x) { return at::exp(x.clamp_max(0)) + at::relu(x); }

/// The inputs in at least 32 bits. `hidden` [B, 1, S, 1] is true at padded keys, undefined if none
/// is.
struct Call {
  Tensor query, key, value, hidden;
  double epsilon = 0;
  at::ScalarType type = at::kFloat;
};

Call call_of(const Mechanism& mechanism, const Inputs& inputs) {
  Call call;
  call.type = inputs["value"].scalar_type();
  const auto wide = call.type == at::kDouble ? at::kDouble : at::kFloat;
  call.query = inputs["query"].to(wide);
  call.key = inputs["key"].to(wide);
  call.value = inputs["value"].to(wide);
  call.epsilon = mechanism.options.number("epsilon");
  if (inputs.key_mask.defined()) {
    call.hidden = inputs.key_mask.logical_not().unsqueeze(1).unsqueeze(-1);
    call.value = call.value.masked_fill(call.hidden, 0);
  }
  return call;
}

/// phi(k), 0 at padded keys.
Tensor key_features(const Call& call) {
  if (!call.hidden.defined()) return feature(call.key);
  // Hidden before and after phi: before, so that what is not a number has no gradient either.
  return feature(call.key.masked_fill(call.hidden, 0)).masked_fill(call.hidden, 0);
}

/// sums[..., :-1] / (sums[..., -1] + epsilon); 0 where nothing was seen.
Tensor normalised(const Tensor& sums, double epsilon) {
  const std::int64_t width = sums.size(-1) - 1;
  const Tensor total = sums.narrow(-1, width, 1) + epsilon;
  return sums.narrow(-1, 0, width) / total.masked_fill(total == 0, 1);
}

Tensor with_ones(const Tensor& value) { return at::constant_pad_nd(value, {0, 1}, 1); }

Tensor bidirectional(const Call& call) {
  const Tensor sum = at::matmul(key_features(call).transpose(-2, -1), with_ones(call.value));
  return normalised(at::matmul(feature(call.query), sum), call.epsilon);
}

/// A causal form; `past` [B, H, F, Dv + 1], where defined, is continued from and advanced.
using Form = std::function<Tensor(const Mechanism&, const Call&, Tensor past)>;

Mixed mix_with(const Form& form, Mechanism& mechanism, const Inputs& inputs, State* state) {
  const Call call = call_of(mechanism, inputs);
  if (mechanism.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError("linear: only the causal pattern continues from a state");
    return {bidirectional(call).to(call.type), {}};
  }
  if (!state) return {form(mechanism, call, {}).to(call.type), {}};
  const at::NoGradGuard no_grad;
  Tensor& sum = (*state)["sum"];
  Tensor& normaliser = (*state)["normaliser"];
  const Tensor past = at::cat({sum, normaliser.unsqueeze(-1)}, -1);
  const Tensor output = form(mechanism, call, past);
  sum.copy_(past.narrow(-1, 0, sum.size(-1)));
  normaliser.copy_(past.select(-1, sum.size(-1)));
  state->position += call.value.size(2);
  return {output.to(call.type), {}};
}

// ---- costs

struct Sizes {
  double heads, queries, keys, features, width, bytes, wide_bytes;
  bool causal;
};

Sizes sizes_of(const Problem& problem) {
  const double bytes = static_cast<double>(bytes_of(problem.dtype));
  return {static_cast<double>(problem.batch * problem.heads),
          static_cast<double>(problem.length),
          static_cast<double>(problem.key_length),
          static_cast<double>(problem.head_dim),
          static_cast<double>(problem.value_dim),
          bytes,
          std::max(bytes, 4.0),
          problem.pattern == Pattern::causal};
}

Cost common_cost(const Sizes& n) {
  Cost cost;
  const double tokens = n.heads * (n.keys + n.queries);
  cost.model_flops = 2 * tokens * n.features * n.width + 1.5 * tokens * n.features;
  cost.executed_flops = 2 * tokens * n.features * (n.width + 1);
  cost.minimal_bytes = tokens * (n.features + n.width) * n.bytes;
  cost.exponentials = tokens * n.features;
  if (n.causal) cost.state_bytes = n.heads * n.features * (n.width + 1) * n.wide_bytes;
  return cost;
}

Cost composite_cost(const Options&, const Problem& problem) {
  const Sizes n = sizes_of(problem);
  Cost cost = common_cost(n);
  const double both = n.heads * (n.queries + n.keys) * n.features * n.wide_bytes;
  const double sums = n.heads * (n.queries + n.keys) * (n.width + 1) * n.wide_bytes;
  cost.workspace_bytes = 2 * both + sums;
  cost.saved_bytes = 2 * both + sums;
  cost.backward_flops = 2;
  if (n.causal) {
    const double states = n.heads * n.keys * n.features * (n.width + 1);
    cost.executed_flops = 4 * states;
    cost.workspace_bytes += 2 * states * n.wide_bytes;
    cost.saved_bytes += states * n.wide_bytes;
  }
  return cost;
}

// ---- implementations

Implementation composite() {
  Implementation implementation;
  implementation.name = "composite";
  implementation.title = "cumulative sums of all states at once, in tensor operations";
  implementation.supports = [](const Options&, const Problem&) { return Support{}; };
  implementation.mix = [](Mechanism& mechanism, const Inputs& inputs, State* state) {
    const Form form = [](const Mechanism&, const Call& call, const Tensor& past) {
      return normalised(causal_product::materialised(feature(call.query), key_features(call),
                                                     with_ones(call.value), past),
                        call.epsilon);
    };
    return mix_with(form, mechanism, inputs, state);
  };
  implementation.cost = composite_cost;
  implementation.growth = {1, 1, 0, 0};
  return implementation;
}

}  // namespace

Entry linear() {
  Entry entry;
  entry.name = "linear";
  entry.title = "Linear attention, elu(x) + 1";
  entry.citation =
      "Katharopoulos, Vyas, Pappas, Fleuret 2020, Transformers are RNNs: Fast Autoregressive "
      "Transformers with Linear Attention, arXiv:2006.16236";
  entry.options = {{"epsilon", OptionType::number, 1e-6, "added to the sum of weights", 0, {}, {}},
                   {"chunk",
                    OptionType::integer,
                    std::int64_t{64},
                    "tokens that the chunked implementation takes together",
                    1,
                    {},
                    {}}};
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = [](const Options&, const Problem& problem) {
    if (problem.kv_heads == problem.heads) return Support{};
    return Support::no("linear: key and value heads are not shared; set kv_heads to heads");
  };
  entry.derive = [](const Options& options, const Problem&) { return options; };
  entry.make = [](const Options& options, const Problem& problem) {
    return std::make_shared<Linear>("linear", options, problem);
  };
  entry.implementations = {composite()};
  return entry;
}

}  // namespace attnbench::mechanisms
