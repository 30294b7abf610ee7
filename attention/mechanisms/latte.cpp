// Latte, Dolga et al. 2024: latents read averages of the values that each token sees. The causal
// forms are those of attention/algorithms/prefix_pool/prefix_pool.hpp.
#include <limits>

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/algorithms/tokens/token_mix.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using prefix_pool::Carry;
using prefix_pool::Query;

class Latte : public MixesTokens {
 public:
  Latte(const std::string& name, const Options& chosen, const Problem& asked)
      : MixesTokens(name, chosen, asked, chosen.integer("chunk")) {}

  std::vector<Role> roles() const override {
    const std::int64_t latents = options.integer("latents_per_head");
    return {{"query_logits", Source::query_tokens, latents, fed()},
            {"key_logits", Source::key_tokens, latents, fed()},
            {"value", Source::key_tokens, problem.value_dim}};
  }

  /// In float32 for 16-bit inputs: sums over many tokens need the mantissa.
  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    const Carry carry = prefix_pool::empty_carry(
        batch, problem.kv_heads, options.integer("latents_per_head"), problem.value_dim, tensor);
    State state;
    state.tensors = {
        {"maximum", carry.maximum}, {"normaliser", carry.normaliser}, {"sum", carry.sum}};
    add_mix_state(state, batch, tensor);
    return state;
  }
};

/// The three inputs, scaled, the values rotated by their positions from `first` on if vapor; at
/// padding scores of -inf and values of 0.
struct Call {
  at::Tensor query;
  at::Tensor scores;
  at::Tensor values;
};

Call call_of(const Mechanism& mechanism, const Inputs& inputs, std::int64_t first) {
  Call call{inputs["query_logits"], inputs["key_logits"], inputs["value"]};
  const double scale = mechanism.options.number("logit_scale");
  if (scale != 1) {
    call.query = call.query * scale;
    call.scores = call.scores * scale;
  }
  call.scores =
      without_padding(call.scores, inputs.key_mask, -std::numeric_limits<double>::infinity());
  call.values = without_padding(call.values, inputs.key_mask);
  if (mechanism.options.boolean("vapor")) {
    const double base = mechanism.options.number("rotary_base");
    call.values = rotated(call.values, first, base, Rotation::forward);
  }
  return call;
}

at::Tensor turned_back(const Mechanism& mechanism, const at::Tensor& output, std::int64_t first) {
  if (!mechanism.options.boolean("vapor")) return output;
  return rotated(output, first, mechanism.options.number("rotary_base"), Rotation::inverse);
}

/// A causal form, which continues from `carry`, if there is one, and advances it.
using Causal = std::function<at::Tensor(const Mechanism&, const Call&, Carry*)>;

Mixed mix_with(const Causal& causal, Mechanism& mechanism, const Inputs& inputs, State* state,
               bool in_kernels) {
  const std::int64_t first = state != nullptr ? state->position : 0;
  const Call call = call_of(mechanism, inputs, first);
  if (mechanism.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError("latte: only the causal pattern continues from a state");
    const auto whole = in_kernels ? prefix_pool::whole_fused : prefix_pool::whole;
    const at::Tensor output = whole(call.query, Query::logits, call.scores, call.values);
    return {turned_back(mechanism, output, first), {}};
  }
  if (!state) return {turned_back(mechanism, causal(mechanism, call, nullptr), first), {}};
  Carry carry{(*state)["maximum"], (*state)["normaliser"], (*state)["sum"]};
  Mixed mixed{turned_back(mechanism, causal(mechanism, call, &carry), first), {}};
  state->position += call.values.size(2);
  return mixed;
}

// ---- costs

prefix_pool::PoolSizes sizes_of(const Options& options, const Problem& problem) {
  return prefix_pool::pool_sizes(problem, options.integer("latents_per_head"));
}

Cost composite_cost(const Options& options, const Problem& problem) {
  const auto n = sizes_of(options, problem);
  if (problem.pattern == Pattern::causal) return prefix_pool::materialised_cost(n);
  return prefix_pool::whole_cost(n, static_cast<double>(problem.key_length));
}

// ---- implementations

Implementation implementation_of(const std::string& name, const std::string& title,
                                 const Causal& causal) {
  return causal_implementation("latte", name, title,
                               [causal](Mechanism& mechanism, const Inputs& inputs, State* state) {
                                 return mix_with(causal, mechanism, inputs, state, false);
                               });
}

Implementation composite() {
  const Causal causal = [](const Mechanism&, const Call& call, Carry* carry) {
    return prefix_pool::materialised(call.query, Query::logits, call.scores, call.values, carry);
  };
  Implementation implementation = implementation_of(
      "composite", "the paper's vectorised form: all prefixes at once, in tensor operations",
      causal);
  implementation.supports = supports_all;
  implementation.cost = composite_cost;
  implementation.growth = {
      .time_in_latents = 1, .workspace_in_latents = 1, .workspace_in_head_dim = 1};
  return implementation;
}

Implementation scan() {
  const Causal causal = [](const Mechanism&, const Call& call, Carry* carry) {
    return prefix_pool::scan(call.query, Query::logits, call.scores, call.values, carry);
  };
  Implementation implementation = implementation_of(
      "scan", "token by token with a running maximum, equations 20 and 21", causal);
  implementation.cost = [](const Options& options, const Problem& problem) {
    return prefix_pool::scan_cost(sizes_of(options, problem));
  };
  implementation.growth = {
      .workspace_in_length = 0, .time_in_latents = 1, .workspace_in_latents = 1};
  implementation.rank = -1;
  return implementation;
}

Implementation chunked() {
  const Causal causal = [](const Mechanism& self, const Call& call, Carry* carry) {
    if (carry && call.values.size(2) < kShortStep) {
      return prefix_pool::scan(call.query, Query::logits, call.scores, call.values, carry);
    }
    return prefix_pool::chunked(call.query, Query::logits, call.scores, call.values,
                                self.options.integer("chunk"), carry);
  };
  Implementation implementation =
      implementation_of("chunked", "stable matrix products over chunks of tokens", causal);
  implementation.cost = [](const Options& options, const Problem& problem) {
    return prefix_pool::chunked_cost(sizes_of(options, problem),
                                     static_cast<double>(options.integer("chunk")));
  };
  implementation.growth = {
      .workspace_in_length = 0, .time_in_latents = 1, .workspace_in_latents = 1};
  implementation.rank = 10;
  return implementation;
}

Implementation fused() {
  const Causal causal = [](const Mechanism&, const Call& call, Carry* carry) {
    return prefix_pool::fused(call.query, Query::logits, call.scores, call.values, carry);
  };
  Implementation implementation =
      implementation_of("fused", "one kernel: a token scan over tiles of the state", causal);
  implementation.mix = [causal](Mechanism& mechanism, const Inputs& inputs, State* state) {
    return mix_with(causal, mechanism, inputs, state, true);
  };
  implementation.supports = [](const Options& options, const Problem& problem) {
    const std::int64_t latents = options.integer("latents_per_head");
    return problem.pattern == Pattern::causal ? prefix_pool::fused_supports(problem, latents)
                                              : prefix_pool::whole_fused_supports(problem);
  };
  implementation.cost = [](const Options& options, const Problem& problem) {
    const auto n = sizes_of(options, problem);
    if (problem.pattern == Pattern::causal) return prefix_pool::fused_cost(n, problem);
    return prefix_pool::whole_fused_cost(n, problem, Query::logits);
  };
  implementation.growth = {
      .workspace_in_length = 0, .time_in_latents = 1, .workspace_in_latents = 1};
  implementation.rank = 20;
  return implementation;
}

// ---- the entry

std::vector<Option> options() {
  std::vector<Option> all{
      Option::number("logit_scale", 1, "factor on the query and key logits before their softmaxes"),
      Option::boolean("vapor", false,
                      "rotate the values by their positions and the output back; the weights do "
                      "not change"),
      Option::number("rotary_base", 10000, "base of the angles of vapor", 1)};
  for (Option& each : token_mix_options("the latent logits")) all.push_back(std::move(each));
  all.push_back(chunk_option());
  return latents_options(std::move(all));
}

}  // namespace

Entry latte() {
  Entry entry;
  entry.name = "latte";
  entry.title = "Latte: latent attention";
  entry.citation =
      "Dolga, Maystre, Cobzarenco, Barber 2024, Latte: Latent Attention for Linear Time "
      "Transformers, arXiv:2402.17512";
  entry.formula =
      "y_t = sum_l softmax_l(q_t) sum_s w_s,l v_s,  w_.,l the softmax of k_s,l over the tokens s "
      "that t sees\n"
      "kv_heads below heads: heads of a group have a q each, and k, v and their sums in common";
  entry.differs_from = {
      {"Latte v2's convolution (equation 18) sums K + 1 tokens; before=conv sums K, its `taps`, as "
       "its text and table say",
       "taps=4 gives the sum of its equation for K = 3"},
      {"Latte's heads have scores and values of their own, as here by default",
       "kv_heads below heads lets them share these and their sums, not their queries"}};
  entry.options = options();
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = [](const Options& options, const Problem& problem) {
    return token_mix_support("latte", options, problem);
  };
  entry.derive = [](const Options& options, const Problem& problem) {
    return derive_latents("latte", options, problem, problem.head_dim);
  };
  entry.make = maker<Latte>("latte");
  entry.implementations = {composite(), scan(), chunked(), fused()};
  return entry;
}

}  // namespace attnbench::mechanisms
