// Latte-Macchiato: one normalised mixture of L + 1 states. State 0 is a softmax over a sliding
// window, the others are Latte's latents, with the same values. Latte v2, section 4.1, eq. 15-19;
// the denominator of eq. 19 is taken over all L + 1 states, as in the text.
#include <algorithm>
#include <limits>

#include "attention/algorithms/mixture/mixture.hpp"
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/token_mix.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using mixture::Form;
using prefix_pool::Carry;

class Macchiato : public MixesTokens {
 public:
  Macchiato(const std::string& name, const Options& chosen, const Problem& asked)
      : MixesTokens(name, chosen, asked, chosen.integer("chunk")) {}

  std::vector<Role> roles() const override {
    const std::int64_t latents = options.integer("latents_per_head");
    return {{"query_logits", Source::query_tokens, latents + 1, fed()},
            {"key_logits", Source::key_tokens, latents, fed()},
            {"value", Source::key_tokens, problem.value_dim},
            {"local_query", Source::query_tokens, problem.head_dim},
            {"local_key", Source::key_tokens, problem.head_dim}};
  }

  /// The window's ring buffers, the latents' sums, and the state of `before`.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    const Carry carry = prefix_pool::empty_carry(
        batch, problem.kv_heads, options.integer("latents_per_head"), problem.value_dim, tensor);
    State state;
    state.tensors = {
        {"maximum", carry.maximum}, {"normaliser", carry.normaliser}, {"sum", carry.sum}};
    add_rings(state, problem, batch, capacity, options.window("window").left, tensor);
    add_mix_state(state, batch, tensor);
    return state;
  }
};

/// The inputs scaled, rotated to their positions from `first` on, and hidden at padding.
mixture::Call call_of(const Mechanism& mechanism, const Inputs& inputs, std::int64_t first) {
  const Options& options = mechanism.options;
  mixture::Call call{inputs["query_logits"], inputs["key_logits"], {}, inputs["value"]};
  SoftmaxCall& local = call.local;
  local.q = inputs["local_query"];
  local.k = inputs["local_key"];
  const double scale = options.number("logit_scale");
  if (scale != 1) {
    call.query = call.query * scale;
    call.scores = call.scores * scale;
  }
  local.key_mask = inputs.key_mask;
  call.scores =
      without_padding(call.scores, inputs.key_mask, -std::numeric_limits<double>::infinity());
  call.values = without_padding(call.values, inputs.key_mask);
  local.k = without_padding(local.k, inputs.key_mask);
  const double base = options.number("rotary_base");
  if (options.boolean("rotary")) {
    const RotaryTable table = rotary_table(local.q, first, base);
    local.q = rotated(local.q, table, Rotation::forward);
    local.k = rotated(local.k, table, Rotation::forward);
  }
  if (options.boolean("vapor")) call.values = rotated(call.values, first, base, Rotation::forward);
  local.v = call.values;
  local.scale = scale_of(mechanism);
  local.left = options.window("window").left;
  local.right = options.window("window").right;
  return call;
}

at::Tensor finished(const Mechanism& mechanism, const at::Tensor& output, std::int64_t first) {
  if (!mechanism.options.boolean("vapor")) return output;
  return rotated(output, first, mechanism.options.number("rotary_base"), Rotation::inverse);
}

/// All tokens of `inputs` at once, continuing from the state.
at::Tensor step(Mechanism& mechanism, const Inputs& inputs, State& state, Form form) {
  const std::int64_t first = state.position;
  mixture::Call call = call_of(mechanism, inputs, first);
  take_into_rings(state, call.local);
  Carry carry{state["maximum"], state["normaliser"], state["sum"]};
  state.position += call.values.size(2);
  return finished(mechanism,
                  mixture::causal(call, form, mechanism.options.integer("chunk"), &carry), first);
}

Inputs slice(const Inputs& inputs, std::int64_t begin, std::int64_t count) {
  Inputs part;
  for (const auto& [role, tensor] : inputs.tensors) {
    part.tensors[role] = tensor.narrow(2, begin, count);
  }
  if (inputs.key_mask.defined()) part.key_mask = inputs.key_mask.narrow(1, begin, count);
  return part;
}

/// Segment by segment, so that only the output grows with the sequence.
at::Tensor streamed(Mechanism& mechanism, const Inputs& inputs, State& state, Form form) {
  const std::int64_t most = mixture::segment(mechanism.options.integer("chunk"));
  const std::int64_t length = inputs["value"].size(2);
  if (length <= most) return step(mechanism, inputs, state, form);
  const at::Tensor& value = inputs["value"];
  const at::Tensor output = at::empty(
      {value.size(0), inputs["query_logits"].size(1), length, value.size(3)}, value.options());
  for (std::int64_t begin = 0; begin < length; begin += most) {
    const std::int64_t count = std::min(most, length - begin);
    output.narrow(2, begin, count).copy_(step(mechanism, slice(inputs, begin, count), state, form));
  }
  return output;
}

bool recorded(const Inputs& inputs) {
  std::vector<at::Tensor> tensors;
  for (const auto& [role, tensor] : inputs.tensors) tensors.push_back(tensor);
  return gradient_wanted(tensors);
}

Mixed mix(Mechanism& mechanism, const Inputs& inputs, State* state, Form form) {
  const bool causal = mechanism.problem.pattern == Pattern::causal;
  // The composite form computes all prefixes at once; the fused form bounds its workspace itself.
  const bool whole = form == Form::composite || form == Form::fused;
  if (state != nullptr) {
    if (!causal) {
      throw UnsupportedError("macchiato: only the causal pattern continues from a state");
    }
    const at::NoGradGuard no_grad;
    if (whole) return {step(mechanism, inputs, *state, form), {}};
    return {streamed(mechanism, inputs, *state, form), {}};
  }
  if (causal && !whole && !recorded(inputs)) {
    const at::Tensor& value = inputs["value"];
    State own = mechanism.empty_state(value.size(0), value.size(2), value.options());
    return {streamed(mechanism, inputs, own, form), {}};
  }
  const mixture::Call call = call_of(mechanism, inputs, 0);
  const at::Tensor output = causal ? mixture::causal(call, form, mechanism.options.integer("chunk"))
                                   : mixture::bidirectional(call, form);
  return {finished(mechanism, output, 0), {}};
}

// ---- implementations

Implementation implementation_of(const std::string& name, const std::string& title, Form form) {
  Implementation implementation = causal_implementation(
      "macchiato", name, title, [form](Mechanism& mechanism, const Inputs& inputs, State* state) {
        return mix(mechanism, inputs, state, form);
      });
  if (form == Form::composite || form == Form::chunked) {
    implementation.supports = supports_all;
  }
  implementation.cost = [form](const Options& options, const Problem& problem) {
    return mixture::cost(form, options, problem);
  };
  implementation.growth = {
      .workspace_in_length = 0, .time_in_latents = 1, .workspace_in_latents = 1};
  return implementation;
}

Support fused_supports(const Options& options, const Problem& problem) {
  const std::int64_t latents = options.integer("latents_per_head");
  const Support pool = problem.pattern == Pattern::causal
                           ? prefix_pool::fused_supports(problem, latents)
                           : prefix_pool::whole_fused_supports(problem);
  return pool ? mixture::window_supports(options, problem) : pool;
}

std::vector<Implementation> implementations() {
  Implementation composite = implementation_of(
      "composite", "whole score matrices and all prefixes at once, in tensor operations",
      Form::composite);
  // Below 4096 tokens all prefixes outweigh the score matrices.
  composite.growth = {.time_in_length = 2,
                      .workspace_in_length = 2,
                      .time_in_latents = 1,
                      .workspace_in_latents = 1,
                      .from_length = 4096};
  Implementation scan =
      implementation_of("scan", "the latents token by token, the window in tiles", Form::scan);
  scan.rank = -1;
  scan.growth.from_length = 1024;  // below, a segment of its scores is not full
  Implementation chunked = implementation_of(
      "chunked", "the latents by chunks as matrix products, the window in tiles", Form::chunked);
  chunked.rank = 10;
  Implementation fused = implementation_of(
      "fused", "the window in tiles, the latents in one kernel with the mixture's weights",
      Form::fused);
  fused.supports = fused_supports;
  fused.growth.from_length = kGrowingTogether;
  fused.rank = 20;
  return {composite, scan, chunked, fused};
}

// ---- the entry

std::vector<Option> options() {
  std::vector<Option> all{
      window_option(),
      Option::text("window_convention", {"keys", "paper_eq17"},
                   "keys: a window of 128 sees 128 keys; paper_eq17: 129, s from t - 128 to t (on "
                   "both sides where bidirectional)"),
      scale_option(),
      Option::number("logit_scale", 1, "factor on the query and key logits before their softmaxes"),
      Option::boolean("rotary", false,
                      "rotate the local queries and keys by their positions, as the paper's text "
                      "models do"),
      Option::number("rotary_base", 10000, "base of the angles of rotary and vapor", 1),
      Option::boolean("vapor", false,
                      "rotate the values by their positions and the output back; the weights do "
                      "not change")};
  for (Option& each : token_mix_options("the latent logits")) all.push_back(std::move(each));
  all.push_back(chunk_option());
  return latents_options(std::move(all));
}

Options derive(const Options& options, const Problem& problem) {
  Options derived = derive_window(options, problem);
  if (derived.text("window_convention") == "paper_eq17") {
    const Window said = derived.window("window");
    const std::int64_t width = said.left + 1 + said.right;
    derived.set("window", Window{width, problem.pattern == Pattern::causal ? 0 : width});
    derived.set("window_convention", std::string("keys"));  // `window` now has this convention
  }
  return derive_latents("macchiato", derived, problem, problem.head_dim);
}

}  // namespace

Entry macchiato() {
  Entry entry;
  entry.name = "macchiato";
  entry.title = "Latte-Macchiato: a window and latents in one mixture";
  entry.citation =
      "Unifying Linear-Time Attention via Latent Probabilistic Modelling (Latte v2), section 4.1";
  entry.formula =
      "y_t = p_t,0 sum_s softmax_s(scale q_t.k_s) v_s + sum_l p_t,l sum_s softmax_s(k_s,l) v_s\n"
      "p_t the softmax of L + 1 logits; the first sum over t's window, the others over all tokens "
      "that t sees\n"
      "kv_heads below heads: heads of a group have p and q each, and k, v and their sums in common";
  entry.options = options();
  entry.differs_from = {
      {"the paper's window has no 1/sqrt(D) in front of its scores; here they are scaled",
       "scale=1 gives the paper's form"},
      {"Latte v2's equation 19 sums over L states; here over all L + 1, the window's included, "
       "without which the weights of a token would not sum to 1",
       "not available"},
      {"Latte v2 does not say how latents share heads where the window's keys do, as in the Gemma "
       "that it trains further",
       "with kv_heads of that model each of its key heads has latents, which its query heads read "
       "by logits of their own"}};
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::bidirectional, Pattern::causal};
  entry.supports = [](const Options& options, const Problem& problem) {
    if (problem.pattern == Pattern::cross) {
      return Support::no("cross is undefined, a window needs queries and keys of one sequence");
    }
    return token_mix_support("macchiato", options, problem);
  };
  entry.derive = derive;
  entry.make = maker<Macchiato>("macchiato");
  entry.implementations = implementations();
  return entry;
}

}  // namespace attnbench::mechanisms
