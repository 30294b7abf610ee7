// example_mechanism: linear attention (Katharopoulos et al. 2020) to start from. Change what it
// computes here and, as plain loops in double, in its reference:
//   y_t = sum_{s <= t} (f(q_t).f(k_s)) v_s / (sum_{s <= t} f(q_t).f(k_s) + epsilon),  f(x) = elu(x)
//   + 1.
#include <algorithm>

#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

class ExampleMechanism : public Mechanism {
 public:
  using Mechanism::Mechanism;

  /// The inputs of `mix`, here those of attention; {"gate", Source::query_tokens, 1} is another.
  std::vector<Role> roles() const override { return query_key_value(problem); }

  /// What is kept of the tokens before, where the mechanism can continue token by token.
  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    // Sums over a long past need more than 16 bits, whatever the inputs have.
    const auto wide = tensor.dtype() == at::kDouble ? tensor : tensor.dtype(at::kFloat);
    State state;
    state.tensors["sum"] =
        at::zeros({batch, problem.heads, problem.head_dim, problem.value_dim}, wide);
    state.tensors["keys"] = at::zeros({batch, problem.heads, problem.head_dim, 1}, wide);
    return state;
  }
};

/// elu(x) + 1, exact where it is small.
at::Tensor feature(const at::Tensor& x) { return at::where(x > 0, x + 1, at::exp(x.clamp_max(0))); }

/// Features of queries and keys [B, H, T, D], and values [B, H, T, Dv], in the state's dtype.
struct Tokens {
  at::Tensor query, key, value;
};

Tokens tokens_of(const Inputs& inputs, at::ScalarType type) {
  at::Tensor key = inputs["key"].to(type);
  at::Tensor value = inputs["value"].to(type);
  at::Tensor padding;
  if (inputs.key_mask.defined()) {
    // Padding may hold anything, NaN included: it is replaced before anything is computed of it, so
    // that gradients of what comes later, such as a norm, are finite there, too.
    padding = inputs.key_mask.logical_not().unsqueeze(1).unsqueeze(-1);
    key = key.masked_fill(padding, 0);
    value = value.masked_fill(padding, 0);
  }
  Tokens tokens{feature(inputs["query"].to(type)), feature(key), value};
  if (padding.defined()) tokens.key = tokens.key.masked_fill(padding, 0);  // feature(0) is 1
  return tokens;
}

/// The state before the first token, or the one that the call continues from.
State state_before(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  const at::Tensor& value = inputs["value"];
  if (state != nullptr) return *state;
  return mechanism.empty_state(value.size(0), value.size(2), value.options());
}

/// Stores the sums after the last of `length` tokens.
void advance(State* state, const at::Tensor& sum, const at::Tensor& keys, std::int64_t length) {
  if (state == nullptr) return;
  (*state)["sum"].copy_(sum);
  (*state)["keys"].copy_(keys);
  state->position += length;
}

/// All tokens at once, by a [T, T] matrix of weights.
Mixed composite(Mechanism& mechanism, const Inputs& inputs, State* state) {
  State before = state_before(mechanism, inputs, state);
  const Tokens tokens = tokens_of(inputs, before["sum"].scalar_type());
  const at::Tensor weights = at::matmul(tokens.query, tokens.key.transpose(-2, -1)).tril();
  const at::Tensor sum =
      at::matmul(weights, tokens.value) + at::matmul(tokens.query, before["sum"]);
  const at::Tensor total = weights.sum(-1, true) + at::matmul(tokens.query, before["keys"]);
  const at::Tensor output = sum / (total + mechanism.options.number("epsilon"));
  const at::Tensor columns = tokens.key.transpose(-2, -1);
  advance(state, before["sum"] + at::matmul(columns, tokens.value),
          before["keys"] + columns.sum(-1, true), tokens.value.size(2));
  return {output.to(inputs["value"].scalar_type()), {}};
}

/// The same, a token at a time: what it takes grows with T, and not with its square.
Mixed scan(Mechanism& mechanism, const Inputs& inputs, State* state) {
  State before = state_before(mechanism, inputs, state);
  at::Tensor sum = before["sum"];
  at::Tensor keys = before["keys"];
  const Tokens tokens = tokens_of(inputs, sum.scalar_type());
  const double epsilon = mechanism.options.number("epsilon");
  std::vector<at::Tensor> rows;
  for (std::int64_t t = 0; t < tokens.value.size(2); ++t) {
    const at::Tensor query = tokens.query.narrow(2, t, 1);
    const at::Tensor column = tokens.key.narrow(2, t, 1).transpose(-2, -1);
    sum = sum + at::matmul(column, tokens.value.narrow(2, t, 1));
    keys = keys + column;
    rows.push_back(at::matmul(query, sum) / (at::matmul(query, keys) + epsilon));
  }
  advance(state, sum, keys, tokens.value.size(2));
  return {at::cat(rows, 2).to(inputs["value"].scalar_type()), {}};
}

Support supports(const Options&, const Problem& problem) {
  if (problem.pattern != Pattern::causal) return Support::no("it looks back only");
  return unshared_heads("example_mechanism", problem);
}

/// What one forward pass costs. `model_flops` is the least that the mathematics asks for, the same
/// for all implementations: two products of a token's keys, values and queries with the state.
Cost cost_of(const Problem& problem, double executed_flops, double workspace_bytes) {
  const double sides = static_cast<double>(problem.batch * problem.heads);
  const auto length = static_cast<double>(problem.length);
  const auto width = static_cast<double>(problem.head_dim);
  const auto value = static_cast<double>(problem.value_dim);
  const double bytes = static_cast<double>(bytes_of(problem.dtype));
  const double wide = std::max(bytes, 4.0);
  const double inputs = sides * length * (2 * width + value);
  Cost cost;
  cost.model_flops = 4 * sides * length * width * value;
  cost.executed_flops = sides * executed_flops;
  cost.exponentials = 2 * sides * length * width;
  cost.minimal_bytes = (inputs + sides * length * value) * bytes;
  cost.workspace_bytes = workspace_bytes + 4 * inputs * wide;
  cost.state_bytes = sides * width * (value + 1) * wide;
  return cost;
}

Implementation all_at_once() {
  Implementation one;
  one.name = "composite";  // the first, and the one that all others are compared with
  one.title = "all tokens at once, by a matrix of weights";
  one.supports = supports;
  one.mix = composite;
  one.cost = [](const Options&, const Problem& problem) {
    const auto length = static_cast<double>(problem.length);
    const auto widths = static_cast<double>(problem.head_dim + problem.value_dim);
    const double matrix = static_cast<double>(problem.batch * problem.heads) * length * length;
    return cost_of(problem, 2 * length * length * widths, 2 * matrix * 4);
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
  one.cost = [](const Options&, const Problem& problem) {
    const auto length = static_cast<double>(problem.length);
    const auto product = static_cast<double>(problem.head_dim * problem.value_dim);
    return cost_of(problem, 5 * length * product, 0);
  };
  one.growth.time_in_head_dim = 2;  // of the state, D x Dv
  return one;                       // grows with T, as claimed unless said otherwise
}

}  // namespace

Entry example_mechanism() {
  Entry entry;
  entry.name = "example_mechanism";
  entry.title = "Linear attention, to start from";
  entry.citation = "say here where it comes from";
  entry.formula = "y_t = sum_s w_ts v_s / (sum_s w_ts + epsilon),  w_ts = phi(q_t).phi(k_s)";
  entry.options = {Option::number("epsilon", 1e-6, "added to the sum of weights", 0)};
  entry.patterns = {Pattern::causal};
  // `attnbench check` tests what a mechanism claims. What it does not claim is listed here, as
  // entry.claims.rows_sum_to_one = false.
  entry.supports = supports;
  entry.derive = [](const Options& options, const Problem&) { return options; };
  entry.make = maker<ExampleMechanism>("example_mechanism");
  entry.implementations = {all_at_once(), token_by_token()};
  return entry;
}

}  // namespace attnbench::mechanisms
