#include "tests/attention/mutants.hpp"

#include <algorithm>

#include "tests/attention/faults.hpp"

namespace attnbench::test {
namespace {

std::vector<Mutant> of_values() {
  const Pattern causal = Pattern::causal;
  const Dtype exact = Dtype::float64;
  return {
      {"eps added to the denominator", "value_equals_reference", "softmax", "composite", causal,
       exact, with_output([](const at::Tensor& y) { return y / (1 + 1e-6); })},
      {"biases taken for 0", "value_equals_reference", "lavo", "fused", causal, exact,
       with(ignores_biases)},
      {"gradient scaled by 1.01", "gradient_equals_finite_differences", "softmax", "composite",
       causal, exact, with_output([](const at::Tensor& y) { return gradient_scaled(y, 1.01); })},
      {"no gradient of the keys", "gradient_equals_finite_differences", "latte", "composite",
       causal, exact, with_role(key, detached)},
      {"inputs rounded to bfloat16", "equals_composite", "linear", "composite", causal,
       Dtype::float32, with(computes_in_bfloat16)},
      {"no gradient of the queries", "equals_composite", "linear", "chunked", causal,
       Dtype::float32, with_role(query, detached)},
      {"gradient scaled by 1.05 in half precision", "equals_composite", "latte", "chunked", causal,
       Dtype::bfloat16, with_output([](const at::Tensor& y) { return gradient_scaled(y, 1.05); })},
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
      {"state of another scale", "step_equals_full", "latte", "scan", causal, single,
       with(scales_the_state)},
      {"what came before is lost", "layer_steps", "macchiato", "chunked", causal, single,
       with(forgets_what_came_before)},
      {"steps that are told of no mask", "step_equals_full", "latte", "chunked", causal, single,
       with(steps_without_mask)},
      {"tokens miscounted", "step_equals_full", "linear", "composite", causal, single,
       with(forgets_to_count)},
  };
}

std::vector<Mutant> of_sizes() {
  const Dtype single = Dtype::float32;
  return {
      {"carry dropped for the tail", "chunk_invariance", "linear", "chunked", Pattern::causal,
       single, with(drops_the_carry)},
      {"carry dropped for the tail", "chunk_invariance", "latte", "chunked", Pattern::causal,
       single, with(drops_the_carry)},
      {"last value of an odd width lost", "odd_widths", "softmax", "composite",
       Pattern::bidirectional, single, with_role(value, odd_value_lost)},
      {"no more keys than queries", "cross", "softmax", "composite", Pattern::cross, single,
       with_key_tokens([](const at::Tensor& x, const Inputs& inputs) {
         return x.narrow(2, 0, std::min(inputs[query(inputs)].size(2), x.size(2)));
       })},
      {"padding counted", "padding", "softmax", "composite", Pattern::bidirectional, single,
       with(counts_padding)},
      {"padding before the first token counted", "padding", "linear", "chunked", Pattern::causal,
       single, with(counts_leading_padding)},
      {"values masked, denominator not", "padding", "linear", "composite", Pattern::bidirectional,
       single, with(masks_values_only)},
      {"zero divided by zero", "padding", "latte", "composite", Pattern::bidirectional, single,
       with(divides_zero_by_zero)},
  };
}

/// Faults of shared key heads alone: each property that tries them must see its own.
std::vector<Mutant> of_groups() {
  const Pattern causal = Pattern::causal;
  const Dtype exact = Dtype::float64;
  return {
      {"heads dealt out to key heads", "value_equals_reference", "softmax", "tiled", causal, exact,
       with(where_grouped(deals_heads_out))},
      {"gradient of shared heads scaled", "gradient_equals_finite_differences", "window", "tiled",
       causal, exact, with(where_grouped(scales_the_gradient))},
      {"shared heads rounded to bfloat16", "equals_composite", "softmax", "chunked", causal, exact,
       with(where_grouped(computes_in_bfloat16))},
      {"state of shared heads not advanced", "step_equals_full", "window", "chunked", causal, exact,
       with(where_grouped(steps_without_state))},
      {"padding counted in shared heads", "padding", "softmax", "tiled", causal, exact,
       with(where_grouped(counts_padding))},
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
      {"decays divided over the sequence", "adversarial", "gla", "chunked", causal, single,
       with(divides_decays)},
      {"finite but clamped", "adversarial", "softmax", "composite", causal, single,
       with_role(key, [](const at::Tensor& x) { return x.clamp(-20, 20); })},
      {"gradient of far scores lost", "adversarial", "latte", "chunked", causal, Dtype::float64,
       with_role(key, [](const at::Tensor& x) { return at::where(x.abs() > 100, x.detach(), x); })},
      {"batch mixed", "batch_and_head_independence", "softmax", "composite", causal, single,
       with_output([](const at::Tensor& y) { return y + 0.001 * y.roll(1, 0); })},
      {"heads mixed", "batch_and_head_independence", "latte", "composite", causal, single,
       with_output([](const at::Tensor& y) { return y + 0.001 * y.roll(1, 1); })},
      {"strides ignored", "layout_independence", "softmax", "composite", causal, single,
       with_role(key, read_as_dense)},
      {"inputs changed in place", "determinism", "latte", "scan", causal, single,
       with(scales_in_place)},
      {"values that drift", "determinism", "softmax", "composite", causal, single,
       with_output(drifting)},
      {"gradients that drift", "determinism", "linear", "composite", causal, single,
       with_output(drifting_gradient)},
  };
}

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> all;
  for (const auto& group :
       {of_values(), of_order(), of_sizes(), of_groups(), of_claims(), of_robustness()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace attnbench::test
