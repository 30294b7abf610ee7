#include "tasks/continuation.hpp"

#include <algorithm>

namespace attnbench::tasks {
namespace {

std::int64_t tokens_of(const Mechanism& mechanism, const Inputs& inputs) {
  for (const Role& role : mechanism.roles()) {
    if (role.source != Source::latent_stream) return inputs[role.name].size(2);
  }
  return 0;
}

Problem of_length(Problem problem, std::int64_t tokens) {
  problem.length = problem.key_length = tokens;
  return problem;
}

/// The shortest past whose state has the size of that of `past`: a window holds no more keys, a
/// recurrence no more numbers, however many tokens came before.
Problem shortest_past(const Implementation& implementation, const Options& options,
                      const Problem& past) {
  const auto state_bytes = [&](std::int64_t tokens) {
    return implementation.cost(options, of_length(past, tokens)).state_bytes;
  };
  const double whole = state_bytes(past.length);
  std::int64_t smaller = 0;  // its state is
  std::int64_t found = past.length;
  while (found - smaller > 1) {
    const std::int64_t middle = smaller + (found - smaller) / 2;
    (state_bytes(middle) < whole ? smaller : found) = middle;
  }
  return of_length(past, found);
}

}  // namespace

Support has_state(const Mechanism& mechanism, const Problem& problem) {
  try {
    mechanism.empty_state(problem.batch, 1, at::TensorOptions().dtype(scalar_type(problem.dtype)));
    return {};
  } catch (const UnsupportedError& error) {
    return Support::no(error.what());
  }
}

Inputs token_slice(const Mechanism& mechanism, const Inputs& inputs, std::int64_t begin,
                   std::int64_t count) {
  Inputs some = inputs;
  for (const Role& role : mechanism.roles()) {
    if (role.source == Source::latent_stream) continue;
    some.tensors[role.name] = inputs[role.name].narrow(2, begin, count);
  }
  if (inputs.key_mask.defined()) some.key_mask = inputs.key_mask.narrow(1, begin, count);
  return some;
}

State state_after(const Implementation& implementation, Mechanism& mechanism, const Inputs& inputs,
                  std::int64_t past, std::int64_t piece) {
  const at::NoGradGuard no_grad;
  const at::Tensor& any = inputs.tensors.begin()->second;
  State state = mechanism.empty_state(any.size(0), tokens_of(mechanism, inputs),
                                      any.options().requires_grad(false));
  piece = std::max(piece, least_piece);
  for (std::int64_t begin = 0; begin < past; begin += piece) {
    const std::int64_t count = std::min(piece, past - begin);
    implementation.mix(mechanism, token_slice(mechanism, inputs, begin, count), &state);
  }
  return state;
}

Problem longer_by(Problem problem, std::int64_t tokens) {
  return of_length(problem, problem.length + tokens);
}

Cost continued_cost(const Implementation& implementation, const Options& options,
                    const Problem& past, std::int64_t tokens) {
  const Cost before = implementation.cost(options, past);
  const Cost after = implementation.cost(options, longer_by(past, tokens));
  Cost cost;
  cost.model_flops = after.model_flops - before.model_flops;
  cost.executed_flops = cost.model_flops;
  cost.minimal_bytes = before.state_bytes + after.minimal_bytes - before.minimal_bytes;
  cost.state_bytes = before.state_bytes;
  return cost;
}

Cost block_cost(const Implementation& implementation, const Options& options, const Problem& past,
                std::int64_t tokens) {
  Cost cost = continued_cost(implementation, options, past, tokens);
  const Problem full = longer_by(shortest_past(implementation, options, past), tokens);
  const Cost whole = implementation.cost(options, full);
  const Cost alone = implementation.cost(options, of_length(past, tokens));
  const double share = static_cast<double>(tokens) / static_cast<double>(full.length);
  // A form that skips what a mask hides executes more for later rows: its part is the model's.
  cost.executed_flops = std::max(cost.model_flops, share * whole.executed_flops);
  const bool known = whole.executed_flops > 0;
  cost.exponentials =
      whole.exponentials * (known ? cost.executed_flops / whole.executed_flops : share);
  cost.workspace_bytes = std::max(alone.workspace_bytes, share * whole.workspace_bytes);
  return cost;
}

}  // namespace attnbench::tasks
