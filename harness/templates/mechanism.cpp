// example_mechanism: an average of all tokens so far, in which a value weighs less by a factor for
// every token that it is older. A small mechanism to start from: change what it computes here and,
// as plain loops in double, in its reference.
#include <algorithm>

#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

class ExampleMechanism : public Mechanism {
 public:
  using Mechanism::Mechanism;

  /// The inputs of `mix`. There may be several: {"query", Source::query_tokens, problem.head_dim},
  /// …
  std::vector<Role> roles() const override {
    return {{"value", Source::key_tokens, problem.value_dim}};
  }

  /// What is kept of the tokens before, where the mechanism can go on token by token.
  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    // Sums over a long past need more than 16 bits, whatever the inputs have.
    const auto wide = tensor.dtype() == at::kDouble ? tensor : tensor.dtype(at::kFloat);
    State state;
    state.tensors["sum"] = at::zeros({batch, problem.heads, 1, problem.value_dim}, wide);
    state.tensors["weight"] = at::zeros({batch, problem.heads, 1, 1}, wide);
    return state;
  }
};

/// The values, and 1 for each real token, in the state's dtype: [B, H, T, Dv] and [B, 1, T, 1].
std::pair<at::Tensor, at::Tensor> tokens_of(const Inputs& inputs, at::ScalarType type) {
  const at::Tensor value = inputs["value"].to(type);
  if (!inputs.key_mask.defined()) {
    return {value, at::ones({value.size(0), 1, value.size(2), 1}, value.options())};
  }
  const at::Tensor real = inputs.key_mask.unsqueeze(1).unsqueeze(-1);
  // Padding may hold anything, NaN included: it is replaced, not multiplied by 0.
  return {value.masked_fill(real.logical_not(), 0), real.to(type)};
}

at::Tensor average(const at::Tensor& sum, const at::Tensor& weight) {
  return at::where(weight > 0, sum / weight.clamp_min(1e-30), at::zeros_like(sum));
}

/// All tokens at once, by a [T, T] matrix of weights.
Mixed composite(Mechanism& mechanism, const Inputs& inputs, State* state) {
  const at::Tensor& given = inputs["value"];
  const std::int64_t length = given.size(2);
  State fresh = mechanism.empty_state(given.size(0), length, given.options());
  State& carried = state != nullptr ? *state : fresh;
  const auto [value, real] = tokens_of(inputs, carried["sum"].scalar_type());
  const double decay = mechanism.options.number("decay");
  const at::Tensor place = at::arange(length, value.options());
  const at::Tensor age = (place.unsqueeze(1) - place).clamp_min(0);
  const at::Tensor weights = at::pow(decay, age).tril();
  const at::Tensor fading = at::pow(decay, place + 1).unsqueeze(-1);
  const at::Tensor sum = at::matmul(weights, value) + fading * carried["sum"];
  const at::Tensor weight = at::matmul(weights, real) + fading * carried["weight"];
  if (state != nullptr) {
    carried["sum"].copy_(sum.narrow(2, length - 1, 1));
    carried["weight"].copy_(weight.narrow(2, length - 1, 1));
    carried.position += length;
  }
  return {average(sum, weight).to(given.scalar_type()), {}};
}

/// The same, a token at a time: what it takes grows with T, and not with its square.
Mixed scan(Mechanism& mechanism, const Inputs& inputs, State* state) {
  const at::Tensor& given = inputs["value"];
  State fresh = mechanism.empty_state(given.size(0), given.size(2), given.options());
  State& carried = state != nullptr ? *state : fresh;
  at::Tensor sum = carried["sum"];
  at::Tensor weight = carried["weight"];
  const auto [value, real] = tokens_of(inputs, sum.scalar_type());
  const double decay = mechanism.options.number("decay");
  std::vector<at::Tensor> rows;
  for (std::int64_t t = 0; t < value.size(2); ++t) {
    sum = sum * decay + value.narrow(2, t, 1);
    weight = weight * decay + real.narrow(2, t, 1);
    rows.push_back(average(sum, weight));
  }
  if (state != nullptr) {
    carried["sum"].copy_(sum);
    carried["weight"].copy_(weight);
    carried.position += value.size(2);
  }
  return {at::cat(rows, 2).to(given.scalar_type()), {}};
}

Support supports(const Options&, const Problem& problem) {
  if (problem.pattern != Pattern::causal) return Support::no("it looks back only");
  return unshared_heads("example_mechanism", problem);
}

/// What one forward pass costs. `model_flops` is the least that the mathematics asks for, the same
/// for all implementations.
Cost cost_of(const Problem& problem, double executed_flops_per_value, double workspace_bytes) {
  const double sides = static_cast<double>(problem.batch * problem.heads);
  const double values =
      sides * static_cast<double>(problem.length) * static_cast<double>(problem.value_dim);
  const double bytes = static_cast<double>(bytes_of(problem.dtype));
  const double wide = std::max(bytes, 4.0);
  Cost cost;
  cost.model_flops = 3 * values;
  cost.executed_flops = executed_flops_per_value * values;
  cost.minimal_bytes = 2 * values * bytes;
  cost.workspace_bytes = workspace_bytes + 4 * values * wide;
  cost.state_bytes = sides * static_cast<double>(problem.value_dim + 1) * wide;
  return cost;
}

Implementation all_at_once() {
  Implementation one;
  one.name = "composite";  // the first, and the one that all others are held against
  one.title = "all tokens at once, by a matrix of weights";
  one.supports = supports;
  one.mix = composite;
  one.cost = [](const Options&, const Problem& problem) {
    const auto length = static_cast<double>(problem.length);
    return cost_of(problem, 2 * length, 3 * length * length * 4);
  };
  one.growth.time_in_length = 2;
  one.growth.workspace_in_length = 2;
  return one;
}

Implementation token_by_token() {
  Implementation one;
  one.name = "scan";
  one.title = "a token at a time";
  one.supports = supports;
  one.mix = scan;
  one.cost = [](const Options&, const Problem& problem) { return cost_of(problem, 4, 0); };
  return one;  // grows with T, as claimed unless said otherwise
}

}  // namespace

Entry example_mechanism() {
  Entry entry;
  entry.name = "example_mechanism";
  entry.title = "An average of the past that fades by a factor per token";
  entry.citation = "say here where it comes from";
  entry.options = {
      {"decay", OptionType::number, 0.9, "weight of a value one token older", 0.0, 1.0, {}}};
  entry.patterns = {Pattern::causal};
  // `attnbench check` holds a mechanism to what it claims; what it does not claim is said here.
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.supports = supports;
  entry.derive = [](const Options& options, const Problem&) { return options; };
  entry.make = maker<ExampleMechanism>("example_mechanism");
  entry.implementations = {all_at_once(), token_by_token()};
  return entry;
}

}  // namespace attnbench::mechanisms
