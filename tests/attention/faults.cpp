#include "tests/attention/faults.hpp"

#include <cmath>
#include <stdexcept>

namespace attnbench::test {

std::function<Implementation(const Implementation&)> with(Fault fault) {
  return [fault](const Implementation& original) {
    Implementation broken = original;
    const Mix mix = original.mix;
    broken.mix = [fault, mix](Mechanism& mechanism, const Inputs& inputs, State* state) {
      return fault(mix, mechanism, inputs, state);
    };
    return broken;
  };
}

std::function<Implementation(const Implementation&)> with_output(
    std::function<at::Tensor(const at::Tensor&)> change) {
  return with([change](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
    Mixed mixed = mix(mechanism, inputs, state);
    mixed.output = change(mixed.output);
    return mixed;
  });
}

std::function<Implementation(const Implementation&)> with_role(
    std::function<std::string(const Inputs&)> role,
    std::function<at::Tensor(const at::Tensor&)> change) {
  return with([=](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
    Inputs out = inputs;
    out.tensors[role(inputs)] = change(inputs[role(inputs)]);
    return mix(mechanism, out, state);
  });
}

namespace {

/// The first of these names that is a role: mechanisms name their inputs as their papers do.
std::string first_of(const Inputs& inputs, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (inputs.tensors.count(name) != 0) return name;
  }
  throw std::logic_error("a mutant does not know the roles of its mechanism");
}
}  // namespace

std::string query(const Inputs& inputs) { return first_of(inputs, {"query", "query_logits"}); }
std::string key(const Inputs& inputs) { return first_of(inputs, {"key", "key_logits"}); }
std::string value(const Inputs&) { return "value"; }

std::function<Implementation(const Implementation&)> with_key_tokens(
    std::function<at::Tensor(const at::Tensor& token, const Inputs&)> change) {
  return with([=](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
    Inputs out = inputs;
    for (const auto& name : {key(inputs), value(inputs)}) {
      out.tensors[name] = change(inputs[name], inputs);
    }
    return mix(mechanism, out, state);
  });
}

Fault where_grouped(Fault fault) {
  return [fault](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
    const bool shared = mechanism.problem.kv_heads != mechanism.problem.heads;
    return shared ? fault(mix, mechanism, inputs, state) : mix(mechanism, inputs, state);
  };
}

Mixed deals_heads_out(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  const Problem& problem = mechanism.problem;
  const auto group = problem.heads / problem.kv_heads;
  Inputs dealt = inputs;
  const at::Tensor heads = at::arange(problem.heads, at::kLong);
  const at::Tensor order = heads.view({group, problem.kv_heads}).t().flatten();
  dealt.tensors[query(inputs)] = inputs[query(inputs)].index_select(1, order);
  Mixed mixed = mix(mechanism, dealt, state);
  mixed.output = mixed.output.index_select(1, order.argsort());
  return mixed;
}

Mixed scales_the_gradient(const Mix& mix, Mechanism& mechanism, const Inputs& inputs,
                          State* state) {
  Mixed mixed = mix(mechanism, inputs, state);
  mixed.output = gradient_scaled(mixed.output, 1.01);
  return mixed;
}

at::Tensor next_token(const at::Tensor& x, const Inputs&) {
  const auto last = x.size(2) - 1;
  return at::cat({x.narrow(2, 1, last), x.narrow(2, last, 1)}, 2);
}

Mixed steps_without_state(const Mix& mix, Mechanism& mechanism, const Inputs& inputs,
                          State* state) {
  if (state == nullptr) return mix(mechanism, inputs, nullptr);
  State left_behind = state->clone();
  Mixed mixed = mix(mechanism, inputs, &left_behind);
  state->position = left_behind.position;
  return mixed;
}

Mixed scales_the_state(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  if (state == nullptr) return mix(mechanism, inputs, nullptr);
  State ours = state->clone();
  if (state->position > 0) ours["sum"].mul_(0.5);
  Mixed mixed = mix(mechanism, inputs, &ours);
  for (auto& [name, tensor] : ours.tensors) (*state)[name].copy_(tensor);
  (*state)["sum"].mul_(2);
  state->position = ours.position;
  return mixed;
}

Mixed forgets_what_came_before(const Mix& mix, Mechanism& mechanism, const Inputs& inputs,
                               State* state) {
  if (state != nullptr) {
    for (const char* name : {"tail", "hidden"}) {
      if (state->tensors.count(name) != 0) (*state)[name].zero_();
    }
  }
  return mix(mechanism, inputs, state);
}

Mixed forgets_to_count(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  Mixed mixed = mix(mechanism, inputs, state);
  if (state != nullptr && state->position > 20) state->position -= 1;
  return mixed;
}

Mixed drops_the_carry(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  const auto chunk = mechanism.options.integer("chunk");
  const auto length = inputs.tensors.begin()->second.size(2);
  const auto tail = length % chunk;
  if (state != nullptr || tail == 0 || tail == length) return mix(mechanism, inputs, state);
  Inputs first = inputs;
  Inputs second = inputs;
  for (const auto& [name, tensor] : inputs.tensors) {
    first.tensors[name] = tensor.narrow(2, 0, length - tail);
    second.tensors[name] = tensor.narrow(2, length - tail, tail);
  }
  return {
      at::cat({mix(mechanism, first, nullptr).output, mix(mechanism, second, nullptr).output}, 2),
      {}};
}

Mixed forgets_the_maximum(const Mix&, Mechanism&, const Inputs& inputs, State*) {
  const at::Tensor weights = at::softmax(inputs[query(inputs)], -1);
  const at::Tensor keys = inputs[key(inputs)].exp();
  const at::Tensor sums = (keys.unsqueeze(-1) * inputs[value(inputs)].unsqueeze(-2)).cumsum(2);
  const at::Tensor means = sums / keys.cumsum(2).unsqueeze(-1);
  return {(weights.unsqueeze(-1) * means).sum(-2), {}};
}

Mixed forgets_to_rescale(const Mix&, Mechanism&, const Inputs& inputs, State*) {
  const at::Tensor q = at::softmax(inputs[query(inputs)], -1);
  const at::Tensor k = inputs[key(inputs)];
  const at::Tensor v = inputs[value(inputs)];
  at::Tensor top = at::full_like(k.select(2, 0), -1e30);
  at::Tensor alpha = at::zeros_like(top);
  at::Tensor sum = at::zeros({v.size(0), v.size(1), k.size(3), v.size(3)}, v.options());
  std::vector<at::Tensor> outputs;
  for (std::int64_t t = 0; t < k.size(2); ++t) {
    const at::Tensor now = at::maximum(top, k.select(2, t));
    // The fault.
    const at::Tensor decay = at::where(now - top > 20, at::ones_like(top), (top - now).exp());
    const at::Tensor weight = (k.select(2, t) - now).exp();
    alpha = alpha * decay + weight;
    sum = sum * decay.unsqueeze(-1) + weight.unsqueeze(-1) * v.select(2, t).unsqueeze(-2);
    top = now;
    outputs.push_back(((q.select(2, t) / alpha).unsqueeze(-1) * sum).sum(-2));
  }
  return {at::stack(outputs, 2), {}};
}

Mixed divides_decays(const Mix&, Mechanism& mechanism, const Inputs& inputs, State*) {
  const double temperature = mechanism.options.number("gate_temperature");
  const at::Tensor decay = (at::log_sigmoid(inputs["gate"]) / temperature).cumsum(2);
  const at::Tensor query = inputs["query"] * decay.exp();
  // The fault: what a long product of decays is divided by is soon 0.
  const at::Tensor key = inputs["key"] * (-decay).exp();
  const at::Tensor weights = at::matmul(query, key.transpose(-2, -1)).tril();
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(3)));
  return {at::matmul(weights, inputs["value"]) * scale, {}};
}

Mixed counts_padding(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  Inputs all = inputs;
  all.key_mask = at::Tensor();
  return mix(mechanism, all, state);
}

Mixed ignores_biases(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  const at::NoGradGuard no_grad;
  at::Tensor biases = mechanism.named_parameters()["relative_bias"];
  const at::Tensor kept = biases.clone();
  biases.zero_();
  const Mixed mixed = mix(mechanism, inputs, state);
  biases.copy_(kept);
  return mixed;
}

Mixed counts_leading_padding(const Mix& mix, Mechanism& mechanism, const Inputs& inputs,
                             State* state) {
  if (!inputs.key_mask.defined()) return mix(mechanism, inputs, state);
  Inputs more = inputs;
  const at::Tensor leading = inputs.key_mask.cumsum(1).eq(0) & inputs.key_mask.any(1, true);
  more.key_mask = inputs.key_mask | leading;
  for (const auto& name : {key(inputs), value(inputs)}) {
    more.tensors[name] = inputs[name].masked_fill(leading.unsqueeze(1).unsqueeze(-1), 0);
  }
  return mix(mechanism, more, state);
}

Mixed steps_without_mask(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  Inputs all = inputs;
  if (state != nullptr) all.key_mask = at::Tensor();
  return mix(mechanism, all, state);
}

Mixed masks_values_only(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  Inputs all = inputs;
  all.key_mask = at::Tensor();
  if (inputs.key_mask.defined()) {
    all.tensors[value(inputs)] = inputs[value(inputs)] * inputs.key_mask.unsqueeze(1).unsqueeze(-1);
  }
  return mix(mechanism, all, state);
}

Mixed divides_zero_by_zero(const Mix& mix, Mechanism& mechanism, const Inputs& inputs,
                           State* state) {
  Mixed mixed = mix(mechanism, inputs, state);
  if (inputs.key_mask.defined()) {
    const at::Tensor count = inputs.key_mask.sum(1).view({-1, 1, 1, 1});
    mixed.output = mixed.output * (count / count);
  }
  return mixed;
}

Mixed computes_in_bfloat16(const Mix& mix, Mechanism& mechanism, const Inputs& inputs,
                           State* state) {
  Inputs coarse = inputs;
  const auto type = inputs[value(inputs)].scalar_type();
  for (auto& [name, tensor] : coarse.tensors) tensor = tensor.to(at::kBFloat16).to(type);
  return mix(mechanism, coarse, state);
}

at::Tensor detached(const at::Tensor& x) { return x.detach(); }

at::Tensor gradient_scaled(const at::Tensor& y, double factor) {
  return y * factor - (y * (factor - 1)).detach();
}

at::Tensor drifting(const at::Tensor& y) {
  static int calls = 0;
  return y * (1 + 1e-6 * (++calls % 7));
}

at::Tensor drifting_gradient(const at::Tensor& y) {
  static int calls = 0;
  return gradient_scaled(y, 1 + 1e-5 * (++calls % 7));
}

at::Tensor odd_value_lost(const at::Tensor& v) {
  const auto width = v.size(3);
  if (width % 2 == 0 || width == 1) return v;
  return at::cat({v.narrow(3, 0, width - 1), at::zeros_like(v.narrow(3, 0, 1))}, 3);
}

at::Tensor read_as_dense(const at::Tensor& x) {
  if (x.is_contiguous()) return x;
  std::vector<std::int64_t> strides(static_cast<std::size_t>(x.dim()), 1);
  for (auto i = strides.size() - 1; i > 0; --i) {
    strides[i - 1] = strides[i] * x.size(static_cast<std::int64_t>(i));
  }
  return x.as_strided(x.sizes(), strides);
}

Mixed scales_in_place(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  Mixed mixed = mix(mechanism, inputs, state);
  const at::NoGradGuard no_grad;
  at::Tensor(inputs[query(inputs)].detach()).mul_(0.5);
  return mixed;
}

at::Tensor last_row_changed(const at::Tensor& y) {
  const auto last = y.size(2) - 1;
  return at::cat({y.narrow(2, 0, last), y.narrow(2, last, 1) * 1.01}, 2);
}

}  // namespace attnbench::test
