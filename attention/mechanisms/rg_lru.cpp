// RG-LRU, De et al. 2024: a gated diagonal recurrence, not attention. The baseline with a constant
// state and without keys.
//
// The gates and the value are three roles, projected from the tokens to value_dim numbers per head.
// Griffin gates one projection by block-diagonal maps of itself, which is a special case of weights
// here.
#include <algorithm>

#include "attention/algorithms/recurrence/gated_recurrence.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using gated_recurrence::Call;
using gated_recurrence::DecayInit;

bool runs_back(const Options& options) { return options.text("directions") == "both"; }

bool first_is_plain(const Options& options) { return options.text("first_input") == "plain"; }

class RgLru : public Mechanism {
 public:
  RgLru(const std::string& name, const Options& chosen, const Problem& asked)
      : Mechanism(name, chosen, asked) {
    const auto parameter = [&](const char* word) {
      const auto type = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
      return register_parameter(word, at::zeros({problem.heads, problem.value_dim}, type),
                                problem.gradient);
    };
    ahead_ = {parameter("lambda"), parameter("recurrence_bias"), parameter("input_bias")};
    if (runs_back(options)) {
      back_ = {parameter("backward_lambda"), parameter("backward_recurrence_bias"),
               parameter("backward_input_bias")};
    }
  }

  std::vector<Role> roles() const override {
    return {{"recurrence_gate", Source::key_tokens, problem.value_dim},
            {"input_gate", Source::key_tokens, problem.value_dim},
            {"value", Source::key_tokens, problem.value_dim}};
  }

  void draw_parameters(std::uint64_t seed) override {
    draw(ahead_, seed, "lambda");
    if (runs_back(options)) draw(back_, seed, "backward_lambda");
  }

  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    State state;
    state.tensors["hidden"] =
        gated_recurrence::empty_state(batch, problem.heads, problem.value_dim, tensor);
    if (first_is_plain(options))
      state.tensors["started"] = at::zeros({batch}, tensor.dtype(at::kBool));
    return state;
  }

  /// Records in the state, if there is one, which sequences have begun.
  Call call(const Inputs& inputs, State* state) const {
    Call call{inputs["recurrence_gate"], inputs["input_gate"], inputs["value"], ahead_.lambda,
              ahead_.recurrence_bias,    ahead_.input_bias,    inputs.key_mask};
    if (first_is_plain(options)) {
      const at::Tensor started = state != nullptr ? (*state)["started"] : at::Tensor();
      call.first = gated_recurrence::first_tokens(call.value, call.key_mask, started);
    }
    return call;
  }

  /// The same of the tokens in reverse order, with the parameters of that direction. Padding comes
  /// first then, and leaves the state as it is.
  Call reversed_call(const Inputs& inputs) const {
    const auto flipped = [&](const char* role) { return inputs[role].flip({2}); };
    Call call{flipped("recurrence_gate"),
              flipped("input_gate"),
              flipped("value"),
              back_.lambda,
              back_.recurrence_bias,
              back_.input_bias,
              inputs.key_mask.defined() ? inputs.key_mask.flip({1}) : at::Tensor()};
    if (first_is_plain(options)) {
      call.first = gated_recurrence::first_tokens(call.value, call.key_mask, {});
    }
    return call;
  }

 private:
  struct Parameters {
    at::Tensor lambda, recurrence_bias, input_bias;
  };

  void draw(const Parameters& own, std::uint64_t seed, const char* name) const {
    const at::NoGradGuard no_grad;
    const bool of_paper = options.text("decay_init") == "paper";
    own.lambda.copy_(
        gated_recurrence::draw_lambda(seed, name, problem.heads, problem.value_dim, problem,
                                      of_paper ? DecayInit::paper : DecayInit::recurrentgemma));
    own.recurrence_bias.zero_();
    own.input_bias.zero_();
  }

  Parameters ahead_;
  Parameters back_;  ///< undefined tensors unless it runs back, too
};

using Form = std::function<at::Tensor(const Mechanism&, const Call&, const at::Tensor& state)>;

Implementation implementation_of(const std::string& name, const std::string& title,
                                 const Form& form) {
  const auto mix = [form](Mechanism& mechanism, const Inputs& inputs, State* state) {
    const auto& self = dynamic_cast<const RgLru&>(mechanism);
    const bool both = runs_back(mechanism.options);
    if (both && state != nullptr) {
      throw UnsupportedError("rg_lru: only the causal pattern continues from a state");
    }
    const at::Tensor hidden = state != nullptr ? (*state)["hidden"] : at::Tensor();
    Mixed mixed{form(mechanism, self.call(inputs, state), hidden), {}};
    if (state != nullptr) state->position += inputs["value"].size(2);
    if (both) {
      mixed.output = mixed.output + form(mechanism, self.reversed_call(inputs), {}).flip({2});
    }
    return mixed;
  };
  return {.name = name, .title = title, .supports = supports_all, .mix = mix};
}

/// With `together` tokens in memory at once; the number of arrays at the peak was counted.
Cost cost_of(const Options& options, const Problem& problem, double together, bool side_by_side) {
  const double heads = static_cast<double>(problem.batch * problem.heads);
  const double tokens = static_cast<double>(problem.length);
  const double width = static_cast<double>(problem.value_dim);
  const double bytes = static_cast<double>(bytes_of(problem.dtype));
  const double wide = std::max(bytes, 4.0);
  const double numbers = heads * tokens * width;
  Cost cost;
  // Two biases, log a, a^2 and 1 - a^2, the gated input (2), the recurrence (2).
  cost.model_flops = 9 * numbers;
  // Side by side: the decay of each block, and the state before it.
  cost.executed_flops = cost.model_flops + (side_by_side ? 3 * numbers : 0);
  cost.minimal_bytes = 4 * numbers * bytes;
  cost.exponentials = 4 * numbers;
  cost.state_bytes = heads * width * wide;
  if (first_is_plain(options)) cost.state_bytes += static_cast<double>(problem.batch);  // "started"
  const double piece = heads * std::min(tokens, together) * width * wide;
  cost.workspace_bytes = (side_by_side ? 14 : 11) * piece;
  cost.backward_flops = 4;
  if (!runs_back(options)) return cost;
  // The other direction, on reversed copies of the inputs; the sum of both.
  cost.model_flops = 2 * cost.model_flops + numbers;
  cost.executed_flops = 2 * cost.executed_flops + numbers;
  cost.exponentials *= 2;
  cost.state_bytes = 0;
  cost.workspace_bytes += 5 * numbers * bytes;
  return cost;
}

Implementation composite() {
  Implementation implementation = implementation_of(
      "composite", "all tokens at once, blocks side by side, in tensor operations",
      [](const Mechanism&, const Call& call, const at::Tensor& state) {
        return gated_recurrence::materialised(call, state);
      });
  implementation.cost = [](const Options& options, const Problem& problem) {
    const double tokens = static_cast<double>(problem.length);
    Cost cost = cost_of(options, problem, tokens, true);
    cost.saved_bytes = cost.workspace_bytes;
    cost.backward_flops = 2;
    return cost;
  };
  return implementation;
}

Implementation scan() {
  Implementation implementation = implementation_of(
      "scan", "token by token", [](const Mechanism&, const Call& call, const at::Tensor& state) {
        return gated_recurrence::scan(call, state);
      });
  implementation.cost = [](const Options& options, const Problem& problem) {
    return cost_of(options, problem, gated_recurrence::kScanTogether, false);
  };
  implementation.growth.workspace_in_length = 0;
  implementation.rank = -1;
  return implementation;
}

Implementation chunked() {
  Implementation implementation = implementation_of(
      "chunked", "chunks of tokens side by side, then the state from chunk to chunk",
      [](const Mechanism& self, const Call& call, const at::Tensor& state) {
        return gated_recurrence::chunked(call, self.options.integer("chunk"), state);
      });
  implementation.cost = [](const Options& options, const Problem& problem) {
    const auto together = options.integer("chunk") * gated_recurrence::kChunksTogether;
    return cost_of(options, problem, static_cast<double>(together), true);
  };
  implementation.growth.workspace_in_length = 0;
  implementation.rank = 10;
  return implementation;
}

}  // namespace

Entry rg_lru() {
  Entry entry;
  entry.name = "rg_lru";
  entry.title = "RG-LRU: real-gated linear recurrent unit";
  entry.citation =
      "De et al. 2024, Griffin: Mixing Gated Linear Recurrences with Local Attention for Efficient "
      "Language Models, arXiv:2402.19427, section 2.4";
  entry.formula =
      "h_t = a_t h_{t-1} + sqrt(1 - a_t^2) sigmoid(i_t + b) v_t,  y_t = h_t\n"
      "log a_t = -8 softplus(lambda) sigmoid(r_t + c)";
  entry.options = {
      Option::text(
          "first_input", {"scaled", "plain"},
          "the input of a sequence's first token: scaled by sqrt(1 - a^2) like the others, as "
          "in the paper, or plain, as in recurrentgemma"),
      Option::text("decay_init", {"paper", "recurrentgemma"},
                   "how lambda is drawn: for a at a fully open gate uniform in [0.9, 0.999], or "
                   "recurrentgemma's, for its eighth root there (on a ring)"),
      Option::text(
          "directions", {"forward", "both"},
          "both: the sum of two recurrences over the same gates and values, one from each "
          "end of the real tokens, for the bidirectional pattern (no paper says how; ours)"),
      chunk_option(32)};
  entry.differs_from = {
      {"recurrentgemma does not scale the input of position 0 by sqrt(1 - a^2); the paper does, "
       "and so does the default here",
       "first_input=plain gives the code's form"},
      {"recurrentgemma draws the eighth root of a in [0.9, 0.999], where the paper has a itself",
       "decay_init=recurrentgemma gives the code's draw"},
      {"Griffin gates by block-diagonal maps of the value's own projection; here the gates are "
       "roles of their own, projected from the tokens",
       "a choice of weights: the first is a case of the second"}};
  entry.claims.rows_sum_to_one = false;
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::causal, Pattern::bidirectional};
  entry.supports = [](const Options& options, const Problem& problem) {
    if (problem.pattern == Pattern::cross) {
      return Support::no("rg_lru: cross is undefined, a recurrence runs over one sequence");
    }
    if (problem.pattern == Pattern::bidirectional && !runs_back(options)) {
      return Support::no(
          "rg_lru: a recurrence runs forward in time; choose the causal pattern, or "
          "directions=both");
    }
    if (problem.pattern == Pattern::causal && runs_back(options)) {
      return Support::no(
          "rg_lru: directions=both looks ahead; choose the bidirectional pattern, or "
          "directions=forward");
    }
    return unshared_heads("rg_lru", problem);
  };
  entry.make = maker<RgLru>("rg_lru");
  entry.implementations = {composite(), scan(), chunked()};
  return entry;
}

}  // namespace attnbench::mechanisms
