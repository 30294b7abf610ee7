// The implementations that mechanisms with a gated state share, and their costs.
#include <algorithm>
#include <cmath>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench::gated_state {
namespace {

using at::Tensor;

/// The same for all forms: a state is decayed, corrected, written and read once for each token.
Cost common_cost(const StateSizes& n) {
  const double tokens = n.heads * n.tokens;
  const double state = n.rows * n.width;
  Cost cost;
  cost.model_flops = tokens * state * (4 + (n.decays ? 1 : 0) + (n.erases() ? 4 : 0));
  cost.executed_flops = cost.model_flops;
  cost.minimal_bytes = tokens * (2 * n.rows / n.shared + 2 * n.width + n.gates + n.rates) * n.bytes;
  cost.exponentials = tokens * (n.gates + n.rates);
  cost.state_bytes = n.heads * state * n.wide_bytes();
  return cost;
}

/// Whether a removal key of its own erases.
bool removes(const StateSizes& n) { return n.rates > 1; }

/// Numbers of a token of one head as inputs in float32 at least.
double numbers_of_token(const StateSizes& n) {
  return (removes(n) ? 4 : 2) * n.rows + n.width + n.gates + 1;
}

/// Three more passes give the gradients, each over a state of its own, and six, two of which erase,
/// where there is a beta, or four that do with a removal key; inputs are what is kept.
Cost fused_cost(const StateSizes& n) {
  Cost cost = common_cost(n);
  cost.workspace_bytes = n.heads * n.wide_bytes() * n.tokens * (numbers_of_token(n) + n.width);
  cost.saved_bytes = cost.workspace_bytes + n.heads * n.wide_bytes() * n.tokens * 2 * n.rows;
  cost.backward_flops = removes(n) ? 4 : n.erases() ? 2 + 4.0 * 5 / 9 : 3;
  return cost;
}

Support kernel_supports(const Recipe& recipe, const Options& options, const Problem& problem) {
  const Support causal = only_causal(recipe.mechanism, problem);
  if (!causal) return causal;
  const StateSizes sizes = recipe.sizes(options, problem);
  return fused_supports(problem, static_cast<std::int64_t>(sizes.rows), sizes.gates,
                        sizes.erases());
}

using Form = std::function<Tensor(const Mechanism&, const Call&, const Tensor& state)>;

Implementation implementation_of(const Recipe& recipe, const std::string& name,
                                 const std::string& title, const Form& form) {
  Implementation implementation = causal_implementation(
      recipe.mechanism, name, title,
      [recipe, form](Mechanism& mechanism, const Inputs& inputs, State* state) {
        const at::AutoGradMode record(state == nullptr && at::GradMode::is_enabled());
        const Call call = recipe.call(mechanism, inputs, state != nullptr ? state->position : 0);
        Tensor output = form(mechanism, call, state != nullptr ? (*state)["memory"] : Tensor());
        if (call.added.defined()) output = output + call.added;
        output = finished_output(mechanism, inputs, output);
        if (state != nullptr) state->position += call.value.size(2);
        return Mixed{output.to(inputs["value"].scalar_type()), {}};
      });
  implementation.growth.time_in_head_dim = 2;
  return implementation;
}

}  // namespace

StateSizes sizes_of(const Problem& problem, std::int64_t rows) {
  StateSizes sizes;
  sizes.heads = static_cast<double>(problem.batch * problem.heads);
  sizes.tokens = static_cast<double>(problem.length);
  sizes.rows = static_cast<double>(rows);
  sizes.width = static_cast<double>(problem.value_dim);
  sizes.bytes = static_cast<double>(bytes_of(problem.dtype));
  return sizes;
}

StateSizes channel_gated_sizes(const Options&, const Problem& problem) {
  StateSizes sizes = sizes_of(problem, problem.head_dim);
  sizes.gates = static_cast<double>(problem.head_dim);
  return sizes;
}

Cost parallel_cost(const StateSizes& n) { return chunked_cost(n, n.tokens); }

Cost scan_cost(const StateSizes& n) {
  Cost cost = common_cost(n);
  cost.workspace_bytes = n.heads * n.wide_bytes() *
                         (n.tokens * (numbers_of_token(n) + n.width) + 3 * n.rows * n.width);
  const double states = (n.decays ? 2 : 1) * n.tokens * n.rows * n.width;
  cost.saved_bytes = cost.workspace_bytes + n.heads * n.wide_bytes() * states;
  cost.backward_flops = 2;
  return cost;
}

Cost chunked_cost(const StateSizes& n, double chunk) {
  Cost cost = common_cost(n);
  chunk = std::min(chunk, n.tokens);
  const double tokens = n.heads * n.tokens;
  const double chunks = n.tokens / chunk;
  const bool channels = n.gates > 1;
  // A(Q, K) and its product with U; A(K, K) and the substitution.
  const double inside = 2 * tokens * chunk * (n.rows + n.width);
  cost.executed_flops += inside * (n.erases() ? 1.5 : 1);
  if (n.erases()) cost.executed_flops += tokens * chunk * n.rows + 2 * tokens * n.rows * n.width;
  // Two scores more, to the removal keys, and their products.
  if (removes(n)) cost.executed_flops += inside * 2 + 2 * tokens * n.rows * n.width;
  const double sets = n.erases() ? 2 : 1;             // of scores
  const double levels = std::ceil(std::log2(chunk));  // of blocks that double
  if (n.decays) cost.exponentials += sets * tokens * (channels ? 2 * n.rows : chunk);
  const double words = tokens * (2 * numbers_of_token(n) + 3 * n.rows + 2 * n.width + 2 * chunk) +
                       n.heads * (chunks + 2) * n.rows * n.width * 2;
  // Where channels decay: what reaches both edges of blocks, and scores that grow.
  const double at_once = removes(n) ? 3 * n.rows + 9 * chunk
                         : channels ? 6 * n.rows + chunk / 2
                         : n.decays ? 2 * chunk
                                    : 0;
  const double recorded = removes(n) ? 8 * n.rows
                          : channels ? 2 * levels * n.rows
                          : n.decays ? 3 * chunk
                                     : 0;
  cost.workspace_bytes = n.wide_bytes() * (words + tokens * at_once);
  cost.saved_bytes = n.wide_bytes() * (words + sets * tokens * (recorded + 2 * chunk));
  cost.backward_flops = 2;
  return cost;
}

std::vector<Implementation> implementations(const Recipe& recipe) {
  Implementation composite = implementation_of(
      recipe, "composite", "all tokens at once by a [T, T] matrix, in tensor operations",
      [](const Mechanism&, const Call& call, const Tensor& state) {
        return parallel(call, state);
      });
  composite.cost = [sizes = recipe.sizes](const Options& options, const Problem& problem) {
    return finished_cost(parallel_cost(sizes(options, problem)), options, problem);
  };
  composite.growth.time_in_length = composite.growth.workspace_in_length = 2;
  composite.growth.from_length = 1024;  // below, the inputs outweigh the matrix
  Implementation by_token = implementation_of(
      recipe, "scan", "token by token, as a recurrent network",
      [](const Mechanism&, const Call& call, const Tensor& state) { return scan(call, state); });
  by_token.cost = [sizes = recipe.sizes](const Options& options, const Problem& problem) {
    return finished_cost(scan_cost(sizes(options, problem)), options, problem);
  };
  by_token.rank = -1;
  Implementation by_chunk = implementation_of(
      recipe, "chunked", "chunks of tokens side by side, then the state from chunk to chunk",
      [](const Mechanism& self, const Call& call, const Tensor& state) {
        if (state.defined() && call.value.size(2) < kShortStep) return scan(call, state);
        return chunked(call, self.options.integer("chunk"), state);
      });
  by_chunk.cost = [sizes = recipe.sizes](const Options& options, const Problem& problem) {
    const auto chunk = static_cast<double>(options.integer("chunk"));
    return finished_cost(chunked_cost(sizes(options, problem), chunk), options, problem);
  };
  by_chunk.rank = 10;
  Implementation in_kernel = implementation_of(
      recipe, "fused", "in one kernel, the state in registers and the first cache",
      [](const Mechanism&, const Call& call, const Tensor& state) { return fused(call, state); });
  in_kernel.supports = [recipe](const Options& options, const Problem& problem) {
    return kernel_supports(recipe, options, problem);
  };
  in_kernel.cost = [sizes = recipe.sizes](const Options& options, const Problem& problem) {
    return finished_cost(fused_cost(sizes(options, problem)), options, problem);
  };
  in_kernel.rank = 20;
  return {composite, by_token, by_chunk, in_kernel};
}

State GatedState::empty_state(std::int64_t batch, std::int64_t,
                              const at::TensorOptions& tensor) const {
  State state;
  state.tensors["memory"] =
      at::zeros({batch, problem.heads, rows(), problem.value_dim}, compute_type(tensor));
  add_mix_state(state, batch, tensor);
  return state;
}

std::vector<Role> GatedState::finished_roles(std::vector<Role> roles,
                                             const std::vector<std::string>& fed) const {
  roles = feeding(std::move(roles), fed);
  if (options.text("output") == "gated") {
    roles.push_back({"output_gate", Source::query_tokens, problem.value_dim});
  }
  return roles;
}

std::vector<Option> options(std::vector<Option> own, const std::string& fed) {
  own.push_back(output_option());
  for (Option& each : token_mix_options(fed)) own.push_back(std::move(each));
  own.push_back(chunk_option());
  return own;
}

Tensor normalised(const Tensor& x, double epsilon) {
  return x * at::rsqrt((x * x).sum(-1, true) + epsilon);
}

Tensor stable_softplus(const Tensor& x) { return at::log_sigmoid(-x).neg(); }

Tensor learned_decay(const Tensor& x, const Tensor& a_log, const Tensor& bias,
                     const Tensor& key_mask) {
  const auto type = compute_type(x.scalar_type());
  const Tensor rate = a_log.to(type).exp().unsqueeze(1);  // [H, 1, 1]
  const Tensor shifted = without_padding(x, key_mask).to(type) + bias.to(type).unsqueeze(1);
  return without_padding(-rate * stable_softplus(shifted), key_mask);
}

void draw_decay_parameters(std::uint64_t seed, const Tensor& a_log, const Tensor& bias,
                           const Problem& problem) {
  const at::NoGradGuard no_grad;
  const auto uniform = [&](const char* name, const Tensor& like, double low, double high) {
    return draw_uniform(seed, name, like.sizes().vec(), low, high, problem).to(at::kDouble);
  };
  a_log.copy_(uniform("a_log", a_log, 1, 16).log());
  const Tensor step = uniform("bias", bias, std::log(0.001), std::log(0.1)).exp();
  bias.copy_(step + at::log(-at::expm1(-step)));
}

Support looks_back_only(const std::string& mechanism, const Problem& problem) {
  if (problem.pattern == Pattern::causal) return {};
  return Support::no(mechanism + ": " + to_string(problem.pattern) +
                     " is undefined, its state decays with the tokens that follow; use the causal "
                     "pattern");
}

Entry entry_of(const Recipe& recipe) {
  Entry entry;
  entry.name = recipe.mechanism;
  entry.claims.rows_sum_to_one = false;
  entry.claims.linear_in_value = false;  // of a plain output alone, which tests hold
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::causal};
  entry.supports = [name = recipe.mechanism](const Options& options, const Problem& problem) {
    for (const Support& support :
         {looks_back_only(name, problem), token_mix_support(name, options, problem),
          unshared_heads(name, problem)}) {
      if (!support) return support;
    }
    return Support{};
  };
  entry.implementations = implementations(recipe);
  return entry;
}

}  // namespace attnbench::gated_state
