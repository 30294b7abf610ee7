// Attention with bounded memory control, Peng et al. 2022: keys and values are pooled into L slots
// by softmaxes over the tokens seen, and a query attends to the slots. `gated` is gated slot
// attention, Zhang et al. 2024: a slot forgets at a rate that each token says, of which ABC is the
// case a_t,l = exp(z_{t-1,l} - z_t,l), z the logarithm of the pool's sum.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;
using gated_state::Call;

constexpr double kAbcInfinity = std::numeric_limits<double>::infinity();
/// The temperature of the gates: Zhang et al. 2024, section 4.1.
constexpr double kGateTemperature = 8;

class Abc : public gated_state::GatedState {
 public:
  using GatedState::GatedState;

  std::vector<Role> roles() const override {
    std::vector<Role> roles = query_key_value(problem);
    roles.push_back({"slots", Source::key_tokens, options.integer("latents_per_head")});
    return finished_roles(std::move(roles));
  }

  /// The slots' keys and values, and what `before` keeps; if they are pools, in units of
  /// exp(maximum), with their sums.
  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    const std::int64_t slots = options.integer("latents_per_head");
    const auto zeros = [&](std::int64_t width) {
      return at::zeros({batch, problem.heads, slots, width}, compute_type(tensor));
    };
    State state;
    state.tensors = {{"keys", zeros(problem.head_dim)}, {"values", zeros(problem.value_dim)}};
    add_mix_state(state, batch, tensor);
    if (options.boolean("gated")) return state;
    state.tensors["normaliser"] = zeros(1);
    state.tensors["maximum"] = zeros(1).squeeze(-1).fill_(-kAbcInfinity);
    return state;
  }
};

/// One of the forms of the gated state.
using AbcForm = std::function<Tensor(const Mechanism&, const Call&, const Tensor& state)>;

struct AbcInputs {
  Tensor query, key, value;  ///< in float32 at least, the query scaled, 0 at padding
  Tensor slots;              ///< logits; -inf at padding, or 0 where gated
};

AbcInputs abc_inputs(const Mechanism& mechanism, const Inputs& inputs) {
  const auto type = compute_type(inputs["value"].scalar_type());
  const Tensor& mask = inputs.key_mask;
  const bool gated = mechanism.options.boolean("gated");
  return {inputs["query"].to(type) / std::sqrt(static_cast<double>(mechanism.problem.head_dim)),
          without_padding(inputs["key"], mask).to(type),
          without_padding(inputs["value"], mask).to(type),
          without_padding(inputs["slots"], mask, gated ? 0 : -kAbcInfinity).to(type)};
}

/// For keys that are summed token by token: logits of slots whose keys nearly agree differ in their
/// last digits, of which every token would cost some.
Call in_double(const Call& call) {
  Call wide = call;
  for (Tensor* each : {&wide.query, &wide.key, &wide.value, &wide.log_decay}) {
    *each = each->to(at::kDouble);
  }
  return wide;
}

/// Weights over slots from logits, 0 at slots that hold no token.
Tensor slot_weights(const Tensor& logits, const Tensor& empty) {
  return at::softmax(logits.masked_fill(empty, -kAbcInfinity), -1).masked_fill(empty, 0);
}

Tensor bidirectional_abc(const AbcInputs& x) {
  const Tensor maximum = x.slots.detach().amax(2, true);
  const Tensor weights = prefix_pool::shrink(x.slots, maximum).transpose(-2, -1);  // [B, H, L, S]
  const Tensor total = weights.sum(-1, true);
  const Tensor empty = total == 0;
  const Tensor shares = weights / total.masked_fill(empty, 1);
  const Tensor logits = at::matmul(x.query, at::matmul(shares, x.key).transpose(-2, -1));
  const Tensor p = slot_weights(logits, empty.transpose(-2, -1).expand_as(logits));
  return at::matmul(p, at::matmul(shares, x.value));
}

/// What a token writes into the slots, and how they decay before.
struct SlotWrites {
  Tensor weight, log_decay;  ///< [B, H, T, L]
};

/// Pools in units of exp(running maximum), which is a constant to gradients: the outputs do not
/// depend on it.
SlotWrites pool_writes(const AbcInputs& x, State* state) {
  const auto shape = x.slots.sizes();
  Tensor start = state != nullptr ? (*state)["maximum"].unsqueeze(2)
                                  : at::full({shape[0], shape[1], 1, shape[3]}, -kAbcInfinity,
                                             x.slots.options().requires_grad(false));
  const Tensor all = std::get<0>(at::cummax(at::cat({start, x.slots.detach()}, 2), 2));
  const Tensor before = all.narrow(2, 0, shape[2]), maximum = all.narrow(2, 1, shape[2]);
  SlotWrites writes{prefix_pool::shrink(x.slots, maximum),
                    (before - maximum).masked_fill(before == -kAbcInfinity, 0)};
  if (state != nullptr) (*state)["maximum"].copy_(all.select(2, shape[2]));
  return writes;
}

Tensor causal_abc(const Mechanism& mechanism, const AbcInputs& x, const AbcForm& form,
                  const Inputs& inputs, State* state) {
  const auto memory = [&](const char* name) {
    return state != nullptr ? (*state)[name] : Tensor();
  };
  const auto read = [&](const Tensor& query, const SlotWrites& writes, const Tensor& value,
                        bool columns, const char* name) {
    Call call{query, writes.weight, value, writes.log_decay, {}, {}};
    call.reads_columns = columns;
    return form(mechanism, call, memory(name));
  };
  if (mechanism.options.boolean("gated")) {
    const Tensor gate =
        without_padding(at::log_sigmoid(x.slots) / kGateTemperature, inputs.key_mask);
    const SlotWrites writes{-at::expm1(gate), gate};
    const Tensor p = at::softmax(read(x.query, writes, x.key, true, "keys"), -1);
    return read(p, writes, x.value, false, "values");
  }
  const SlotWrites writes = pool_writes(x, state);
  const Tensor ones = at::ones_like(x.value.narrow(3, 0, 1)).detach();
  const Tensor total = read(ones, writes, ones, true, "normaliser");
  const Tensor empty = total == 0;
  const Tensor units = total.masked_fill(empty, 1);
  const Tensor p = slot_weights(read(x.query, writes, x.key, true, "keys") / units, empty);
  return read(p / units, writes, x.value, false, "values");
}

Mixed mix_abc(const AbcForm& form, Mechanism& mechanism, const Inputs& inputs, State* state) {
  const at::AutoGradMode record(state == nullptr && at::GradMode::is_enabled());
  const AbcInputs x = abc_inputs(mechanism, inputs);
  const auto type = inputs["value"].scalar_type();
  if (mechanism.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError("abc: only the causal pattern continues from a state");
    const Tensor output = bidirectional_abc(x);
    return {gated_state::finished_output(mechanism, inputs, output).to(type), {}};
  }
  const Tensor output = causal_abc(mechanism, x, form, inputs, state);
  if (state != nullptr) state->position += x.value.size(2);
  return {gated_state::finished_output(mechanism, inputs, output).to(type), {}};
}

// ---- costs

/// Two states, of keys and of values, each decayed, written and read.
Cost abc_cost(const Options& options, const Problem& problem, double chunk, bool by_token) {
  const double slots = static_cast<double>(options.integer("latents_per_head"));
  gated_state::StateSizes sizes =
      gated_state::sizes_of(problem, options.integer("latents_per_head"));
  sizes.width = static_cast<double>(problem.head_dim + problem.value_dim);
  sizes.gates = slots;
  Cost cost = by_token ? gated_state::scan_cost(sizes) : gated_state::chunked_cost(sizes, chunk);
  const double tokens = sizes.heads * sizes.tokens;
  const double inputs = static_cast<double>(problem.head_dim) * 2 +
                        2 * static_cast<double>(problem.value_dim) + slots;
  cost.minimal_bytes = tokens * inputs * sizes.bytes;
  cost.exponentials += tokens * 2 * slots;
  if (!options.boolean("gated")) cost.state_bytes += 2 * sizes.heads * slots * sizes.wide_bytes();
  if (!by_token) {  // the two states one after the other, and the pools' sums
    cost.workspace_bytes *= 1.5;
    cost.saved_bytes *= 3;
  }
  return cost;
}

Cost bidirectional_abc_cost(const Options& options, const Problem& problem) {
  const double slots = static_cast<double>(options.integer("latents_per_head"));
  const double heads = static_cast<double>(problem.batch * problem.heads);
  const double both = heads * static_cast<double>(problem.length + problem.key_length);
  const double widths = static_cast<double>(problem.head_dim + problem.value_dim);
  const double bytes = static_cast<double>(bytes_of(problem.dtype)), wide = std::max(bytes, 4.0);
  Cost cost;
  cost.model_flops = 2 * both * slots * widths;
  cost.executed_flops = cost.model_flops;
  cost.minimal_bytes =
      (both * widths + heads * static_cast<double>(problem.key_length) * slots) * bytes;
  cost.exponentials = both * slots;
  cost.workspace_bytes = (2 * both * slots + both * widths + heads * slots * widths) * wide;
  cost.saved_bytes = cost.workspace_bytes + both * slots * wide;
  cost.backward_flops = 2;
  return cost;
}

// ---- implementations

Implementation abc_implementation(
    const std::string& name, const std::string& title, const AbcForm& form,
    const std::function<double(const Options&, const Problem&)>& chunk, bool by_token = false) {
  Implementation implementation = causal_implementation(
      "abc", name, title, [form](Mechanism& mechanism, const Inputs& inputs, State* state) {
        return mix_abc(form, mechanism, inputs, state);
      });
  implementation.cost = [chunk, by_token](const Options& options, const Problem& problem) {
    const Cost mix = problem.pattern != Pattern::causal
                         ? bidirectional_abc_cost(options, problem)
                         : abc_cost(options, problem, chunk(options, problem), by_token);
    return gated_state::finished_cost(mix, options, problem);
  };
  implementation.growth.time_in_latents = implementation.growth.workspace_in_latents = 1;
  return implementation;
}

std::vector<Implementation> abc_implementations() {
  const auto whole = [](const Options&, const Problem& problem) {
    return static_cast<double>(problem.length);
  };
  Implementation composite = abc_implementation(
      "composite", "all tokens at once by [T, T] matrices, in tensor operations",
      [](const Mechanism&, const Call& call, const Tensor& state) {
        return gated_state::parallel(call, state);
      },
      whole);
  composite.supports = supports_all;
  composite.growth.time_in_length = composite.growth.workspace_in_length = 2;
  composite.growth.from_length = 1024;  // below, the inputs outweigh the matrices
  Implementation scan = abc_implementation(
      "scan", "token by token, as a recurrent network",
      [](const Mechanism&, const Call& call, const Tensor& state) {
        return gated_state::scan(call.reads_columns ? in_double(call) : call, state);
      },
      whole, true);
  scan.rank = -1;
  Implementation chunked = abc_implementation(
      "chunked", "chunks of tokens side by side, then the slots from chunk to chunk",
      [](const Mechanism& self, const Call& call, const Tensor& state) {
        if (state.defined() && call.value.size(2) < kShortStep) {
          return gated_state::scan(call, state);
        }
        return gated_state::chunked(call, self.options.integer("chunk"), state);
      },
      [](const Options& options, const Problem&) {
        return static_cast<double>(options.integer("chunk"));
      });
  chunked.rank = 10;
  return {composite, scan, chunked};
}

}  // namespace

Entry abc() {
  Entry entry;
  entry.name = "abc";
  entry.title = "ABC: keys and values pooled into slots, and softmax attention to the slots";
  entry.citation =
      "Peng, Kasai, Pappas, Yogatama, Wu, Kong, Schwartz, Smith 2022, ABC: Attention with "
      "Bounded-memory Control, arXiv:2110.02488; Zhang, Yang, Zhu, Zhang, Cui, Wang, Wang, Shi, "
      "Wang, Bi, Zhou, Fu 2024, Gated Slot Attention, arXiv:2409.07146";
  entry.formula =
      "K_t,l = sum_s softmax_s(c_s,l) k_s,  V_t,l = sum_s softmax_s(c_s,l) v_s,  s that t sees\n"
      "y_t = sum_l softmax_l(q_t.K_t,l / sqrt(D)) V_t,l\n"
      "gated (causal): K_t,l = a_t,l K_{t-1},l + (1 - a_t,l) k_t, V_t,l likewise,  a = "
      "sigmoid(c)^(1/8)";
  entry.options = latents_options(gated_state::options(
      {Option::boolean("gated", false,
                       "gated slot attention: slots forget at rates that each token says; causal "
                       "only")}));
  entry.differs_from = {
      {"Peng et al. compute a token's weights from its key and from its value; "
       "here, as in Zhang et "
       "al., one set serves both",
       "not available"},
      {"the published layers gate or normalise the output", gated_state::kOutputSaid}};
  entry.claims.rows_sum_to_one =
      false;  // of `gated`, whose slots start from 0; tests hold the rest
  entry.claims.linear_in_value = false;  // of a plain output alone, which tests hold
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = [](const Options& options, const Problem& problem) {
    if (options.boolean("gated")) {
      const Support causal = gated_state::looks_back_only("abc with gated", problem);
      if (!causal) return causal;
    }
    const Support mix = token_mix_support("abc", options, problem);
    return mix ? unshared_heads("abc", problem) : mix;
  };
  entry.derive = [](const Options& options, const Problem& problem) {
    return derive_latents("abc", options, problem, problem.head_dim);
  };
  entry.make = maker<Abc>("abc");
  entry.implementations = abc_implementations();
  entry.aliases = {
      {"gsa", "abc", "auto", {{"gated", true}}, "Gated slot attention: ABC whose slots forget"}};
  return entry;
}

}  // namespace attnbench::mechanisms
