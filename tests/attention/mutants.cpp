#include "tests/attention/mutants.hpp"

#include <cmath>

namespace attnbench::test {
namespace {

using Mix = std::function<Mixed(Mechanism&, const Inputs&, State*)>;
using Fault = std::function<Mixed(const Mix& original, Mechanism&, const Inputs&, State*)>;

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

/// A fault of the output alone.
std::function<Implementation(const Implementation&)> with_output(
    std::function<at::Tensor(const at::Tensor&)> change) {
  return with([change](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
    Mixed mixed = mix(mechanism, inputs, state);
    mixed.output = change(mixed.output);
    return mixed;
  });
}

/// A fault of one input alone; `role` finds its name.
std::function<Implementation(const Implementation&)> with_role(
    std::function<std::string(const Inputs&)> role,
    std::function<at::Tensor(const at::Tensor&)> change) {
  return with([=](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
    Inputs out = inputs;
    out.tensors[role(inputs)] = change(inputs[role(inputs)]);
    return mix(mechanism, out, state);
  });
}

/// The first of these names that is a role: mechanisms name their inputs as their papers do.
std::string first_of(const Inputs& inputs, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (inputs.tensors.count(name) != 0) return name;
  }
  throw std::logic_error("a mutant does not know the roles of its mechanism");
}
std::string query(const Inputs& inputs) {
  return first_of(inputs, {"q", "query", "query_logits", "q_logits"});
}
std::string key(const Inputs& inputs) {
  return first_of(inputs, {"k", "key", "key_logits", "k_logits"});
}
std::string value(const Inputs& inputs) { return first_of(inputs, {"v", "value"}); }

/// A fault of keys and values alike.
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

Mixed forgets_to_count(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  Mixed mixed = mix(mechanism, inputs, state);
  if (state != nullptr && state->position > 20) state->position -= 1;
  return mixed;
}

/// The tail that fills no chunk starts from nothing.
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

/// Sums of exponentials that never subtract a maximum.
Mixed forgets_the_maximum(const Mix&, Mechanism&, const Inputs& inputs, State*) {
  const at::Tensor weights = at::softmax(inputs[query(inputs)], -1);
  const at::Tensor keys = inputs[key(inputs)].exp();
  const at::Tensor sums = (keys.unsqueeze(-1) * inputs[value(inputs)].unsqueeze(-2)).cumsum(2);
  const at::Tensor means = sums / keys.cumsum(2).unsqueeze(-1);
  return {(weights.unsqueeze(-1) * means).sum(-2), {}};
}

/// Half the sums before a new maximum are kept at their old scale, as a running form that tests for
/// the new maximum one token late would.
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
    // The fault: the scale of what went before changes only for rises below 20.
    const at::Tensor fade = at::where(now - top > 20, at::ones_like(top), (top - now).exp());
    const at::Tensor weight = (k.select(2, t) - now).exp();
    alpha = alpha * fade + weight;
    sum = sum * fade.unsqueeze(-1) + weight.unsqueeze(-1) * v.select(2, t).unsqueeze(-2);
    top = now;
    outputs.push_back(((q.select(2, t) / alpha).unsqueeze(-1) * sum).sum(-2));
  }
  return {at::stack(outputs, 2), {}};
}

Mixed counts_padding(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  Inputs all = inputs;
  all.key_mask = at::Tensor();
  return mix(mechanism, all, state);
}

/// Masks values by multiplication, which leaves the padded keys in the denominator.
Mixed masks_values_only(const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
  Inputs all = inputs;
  all.key_mask = at::Tensor();
  if (inputs.key_mask.defined()) {
    all.tensors[value(inputs)] = inputs[value(inputs)] * inputs.key_mask.unsqueeze(1).unsqueeze(-1);
  }
  return mix(mechanism, all, state);
}

/// As a form that divides by a sum of weights without asking whether there were any.
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

/// The gradient of one input is lost; the values are right.
at::Tensor detached(const at::Tensor& x) { return x.detach(); }

at::Tensor gradient_scaled(const at::Tensor& y, double factor) {
  return y * factor - (y * (factor - 1)).detach();
}

/// Different at each call, as sums in whatever order the threads come are.
at::Tensor drifting(const at::Tensor& y) {
  static int calls = 0;
  return y * (1 + 1e-6 * (++calls % 7));
}

at::Tensor drifting_gradient(const at::Tensor& y) {
  static int calls = 0;
  return gradient_scaled(y, 1 + 1e-5 * (++calls % 7));
}

/// Forms that take two numbers at a time and forget the odd one.
at::Tensor odd_value_lost(const at::Tensor& v) {
  const auto width = v.size(3);
  if (width % 2 == 0 || width == 1) return v;
  return at::cat({v.narrow(3, 0, width - 1), at::zeros_like(v.narrow(3, 0, 1))}, 3);
}

at::Tensor last_row_changed(const at::Tensor& y) {
  const auto last = y.size(2) - 1;
  return at::cat({y.narrow(2, 0, last), y.narrow(2, last, 1) * 1.01}, 2);
}

std::vector<Mutant> of_values() {
  const Pattern causal = Pattern::causal;
  const Dtype exact = Dtype::float64;
  return {
      {"eps added to the denominator", "value_equals_reference", "softmax", "composite", causal,
       exact, with_output([](const at::Tensor& y) { return y / (1 + 1e-6); })},
      {"gradient scaled by 1.01", "gradient_equals_finite_differences", "softmax", "composite",
       causal, exact, with_output([](const at::Tensor& y) { return gradient_scaled(y, 1.01); })},
      {"no gradient of the keys", "gradient_equals_finite_differences", "latte", "composite",
       causal, exact, with_role(key, detached)},
      {"inputs rounded to bfloat16", "equals_composite", "linear", "composite", causal,
       Dtype::float32, with(computes_in_bfloat16)},
      {"no gradient of the queries", "equals_composite", "linear", "composite", causal,
       Dtype::float32, with_role(query, detached)},
      {"gradient scaled by 1.05 in half precision", "equals_composite", "latte", "composite",
       causal, Dtype::bfloat16,
       with_output([](const at::Tensor& y) { return gradient_scaled(y, 1.05); })},
  };
}

std::vector<Mutant> of_order() {
  const Pattern causal = Pattern::causal;
  const Dtype single = Dtype::float32;
  return {
      {"mask off by one", "causality", "softmax", "composite", causal, single,
       with_key_tokens(next_token)},
      {"normaliser that reads the future", "causality", "latte", "composite", causal, single,
       with([](const Mix& mix, Mechanism& mechanism, const Inputs& inputs, State* state) {
         Mixed mixed = mix(mechanism, inputs, state);
         const at::Tensor all = at::logsumexp(inputs[key(inputs)], {2, 3}, true);
         mixed.output = mixed.output * (1 + 1e-4 * at::tanh(all / 100));
         return mixed;
       })},
      {"gradient that reads the future", "causality", "linear", "composite", causal, single,
       with_output([](const at::Tensor& y) {
         const at::Tensor leak = (y - y.detach()) * 0.01;
         return y + leak.flip(2);
       })},
      {"state that is not advanced", "step_equals_full", "softmax", "composite", causal, single,
       with(steps_without_state)},
      {"state that is not advanced", "step_equals_full", "latte", "composite", causal, single,
       with(steps_without_state)},
      {"tokens miscounted", "step_equals_full", "linear", "composite", causal, single,
       with(forgets_to_count)},
  };
}

std::vector<Mutant> of_sizes() {
  const Dtype single = Dtype::float32;
  return {
      {"carry dropped for the tail", "chunk_invariance", "linear", "composite", Pattern::causal,
       single, with(drops_the_carry)},
      {"carry dropped for the tail", "chunk_invariance", "latte", "composite", Pattern::causal,
       single, with(drops_the_carry)},
      {"last value of an odd width lost", "odd_widths", "softmax", "composite",
       Pattern::bidirectional, single, with_role(value, odd_value_lost)},
      {"no more keys than queries", "cross", "softmax", "composite", Pattern::cross, single,
       with_key_tokens([](const at::Tensor& x, const Inputs& inputs) {
         return x.narrow(2, 0, std::min(inputs[query(inputs)].size(2), x.size(2)));
       })},
      {"padding counted", "padding", "softmax", "composite", Pattern::bidirectional, single,
       with(counts_padding)},
      {"values masked, denominator not", "padding", "linear", "composite", Pattern::bidirectional,
       single, with(masks_values_only)},
      {"zero divided by zero", "padding", "latte", "composite", Pattern::bidirectional, single,
       with(divides_zero_by_zero)},
  };
}

std::vector<Mutant> of_claims() {
  const Pattern bidirectional = Pattern::bidirectional;
  const Dtype single = Dtype::float32;
  return {
      {"weights that sum to 0.999", "rows_sum_to_one", "softmax", "composite", bidirectional,
       single, with_output([](const at::Tensor& y) { return y * 0.999; })},
      {"a square of the values", "linear_in_value", "latte", "composite", bidirectional, single,
       with_output([](const at::Tensor& y) { return y + 0.001 * y * y; })},
      {"a position in the output", "permutation_equivariance", "softmax", "composite",
       bidirectional, single, with_output([](const at::Tensor& y) {
         return y + 0.001 * at::arange(y.size(2), y.options()).unsqueeze(-1);
       })},
      {"another last row", "last_row", "linear", "composite", Pattern::causal, single,
       with_output(last_row_changed)},
  };
}

std::vector<Mutant> of_robustness() {
  const Pattern causal = Pattern::causal;
  const Dtype single = Dtype::float32;
  return {
      {"maximum forgotten", "adversarial", "latte", "composite", causal, single,
       with(forgets_the_maximum)},
      {"rescale forgotten when the maximum moves", "adversarial", "latte", "composite", causal,
       single, with(forgets_to_rescale)},
      {"finite but clamped", "adversarial", "softmax", "composite", causal, single,
       with_role(key, [](const at::Tensor& x) { return x.clamp(-20, 20); })},
      {"batch mixed", "batch_and_head_independence", "softmax", "composite", causal, single,
       with_output([](const at::Tensor& y) { return y + 0.001 * y.roll(1, 0); })},
      {"heads mixed", "batch_and_head_independence", "latte", "composite", causal, single,
       with_output([](const at::Tensor& y) { return y + 0.001 * y.roll(1, 1); })},
      {"values that drift", "determinism", "softmax", "composite", causal, single,
       with_output(drifting)},
      {"gradients that drift", "determinism", "linear", "composite", causal, single,
       with_output(drifting_gradient)},
  };
}

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> all;
  for (const auto& group : {of_values(), of_order(), of_sizes(), of_claims(), of_robustness()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace attnbench::test
