// A mechanism as somebody outside the tree would write it: fading memory, an average of all values
// so far whose weights fall by a factor per token. One composite implementation, a state, a
// reference.
#include <algorithm>
#include <cmath>

#include "attention/plugin.hpp"

namespace {

using namespace attnbench;

class Fading : public Mechanism {
 public:
  Fading(const Options& chosen, const Problem& sizes) : Mechanism("fading", chosen, sizes) {}

  std::vector<Role> roles() const override {
    return {{"value", Source::key_tokens, problem.value_dim, Feed::projected}};
  }

  /// Sums over a long past need more than 16 bits, whatever the inputs have.
  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& inputs) const override {
    const auto like = inputs.dtype() == at::kDouble ? inputs : inputs.dtype(at::kFloat);
    State state;
    state.tensors["sum"] = at::zeros({batch, problem.heads, problem.value_dim}, like);
    state.tensors["weight"] = at::zeros({batch, problem.heads, 1}, like);
    return state;
  }
};

/// y_t = sum_{s<=t} decay^(t-s) v_s / sum_{s<=t} decay^(t-s), one token after the other.
Mixed mix(Mechanism& mechanism, const Inputs& inputs, State* state) {
  const double decay = mechanism.options.number("decay");
  const at::Tensor& value = inputs["value"];
  State fresh = mechanism.empty_state(value.size(0), value.size(2), value.options());
  State& carried = state != nullptr ? *state : fresh;
  at::Tensor sum = carried["sum"];
  at::Tensor wide = value.to(sum.scalar_type());
  if (inputs.key_mask.defined()) {  // what stands in padding may be anything, NaN included
    wide = wide.masked_fill(inputs.key_mask.logical_not().unsqueeze(1).unsqueeze(-1), 0);
  }
  at::Tensor weight = carried["weight"];
  std::vector<at::Tensor> rows;
  for (std::int64_t t = 0; t < value.size(2); ++t) {
    at::Tensor real = at::ones({value.size(0), 1, 1}, wide.options());
    if (inputs.key_mask.defined()) {
      real = inputs.key_mask.select(1, t).to(wide.scalar_type()).view({-1, 1, 1});
    }
    sum = sum * decay + wide.select(2, t);
    weight = weight * decay + real;
    rows.push_back(at::where(weight > 0, sum / weight.clamp_min(1e-30), at::zeros_like(sum)));
  }
  if (state != nullptr) {
    (*state)["sum"].copy_(sum);
    (*state)["weight"].copy_(weight);
    state->position += value.size(2);
  }
  return {at::stack(rows, 2).to(value.scalar_type()), {}};
}

std::vector<double> reference_rows(const Options& options, const Problem& problem,
                                   const reference::ReferenceInputs& inputs,
                                   const std::vector<reference::RowIndex>& rows) {
  const double decay = options.number("decay");
  const reference::Array& value = inputs.roles.at("value");
  std::vector<double> result;
  for (const auto& row : rows) {
    std::vector<double> sum(static_cast<std::size_t>(problem.value_dim), 0.0);
    double total = 0;
    for (std::int64_t s = 0; s <= row.t; ++s) {
      if (!inputs.visible(row.b, s, problem.key_length)) continue;
      const double weight = std::pow(decay, static_cast<double>(row.t - s));
      total += weight;
      for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += weight * value.row(row.b, row.h, s)[d];
    }
    for (const double x : sum) result.push_back(total > 0 ? x / total : 0.0);
  }
  return result;
}

Cost cost(const Options&, const Problem& problem) {
  const double tokens = static_cast<double>(problem.batch * problem.heads * problem.length);
  const double dims = static_cast<double>(problem.value_dim);
  const double bytes = static_cast<double>(bytes_of(problem.dtype));
  Cost cost;
  cost.model_flops = cost.executed_flops = 3 * tokens * dims;
  cost.minimal_bytes = 2 * tokens * dims * bytes;
  cost.workspace_bytes = tokens * dims * bytes;
  cost.state_bytes =
      static_cast<double>(problem.batch * problem.heads) * (dims + 1) * std::max(bytes, 4.0);
  return cost;
}

Support supports(const Options&, const Problem& problem) {
  if (problem.kv_heads != problem.heads) return Support::no("fading has no grouped heads");
  if (problem.pattern == Pattern::causal) return {};
  return Support::no("fading looks back only: bidirectional and cross are undefined");
}

void add_fading(Registry& registry) {
  Entry entry;
  entry.name = "fading";
  entry.title = "average of the past with weights that fall by a factor per token";
  entry.citation = "an example";
  entry.options = {
      {"decay", OptionType::number, 0.9, "weight of a value one token older", 0.0, 1.0, {}}};
  entry.patterns = {Pattern::causal};
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.supports = supports;
  entry.derive = [](const Options& options, const Problem&) { return options; };
  entry.make = [](const Options& options, const Problem& problem) {
    return std::make_shared<Fading>(options, problem);
  };
  Implementation composite;
  composite.name = "composite";
  composite.title = "a token at a time";
  composite.supports = supports;
  composite.mix = mix;
  composite.cost = cost;
  entry.implementations = {composite};
  registry.add(entry, reference_rows);
}

}  // namespace

ATTNBENCH_PLUGIN(add_fading)
