// The selective state space of Mamba, Gu and Dao 2023: S6, each channel of which has a state of its
// own, a few numbers that decay at rates the token says. B, C and x of the paper are key, query and
// value. With learned constants in place of what tokens say it is S4D-Real, Gu et al. 2022.
#include <algorithm>
#include <cmath>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/recurrence/selective_scan.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

/// The sizes of a mix, as what costs are counted with.
struct MambaSizes {
  double batch, length;
  double groups, channels;  ///< heads that share B and C; channels of all heads, with the batch
  double rows;              ///< numbers of a channel's state
  double rank;              ///< numbers that step sizes are made of; 0: each channel has its own
  double bytes, wide;       ///< of an input's number, and of one that is computed with
  bool selective, gated;

  MambaSizes(const Options& options, const Problem& problem)
      : batch(static_cast<double>(problem.batch)),
        length(static_cast<double>(problem.length)),
        groups(batch * static_cast<double>(problem.kv_heads)),
        channels(batch * static_cast<double>(problem.heads * problem.value_dim)),
        rows(static_cast<double>(options.integer("state"))),
        rank(static_cast<double>(options.integer("step_rank"))),
        bytes(static_cast<double>(bytes_of(problem.dtype))),
        wide(std::max(bytes, 4.0)),
        selective(options.boolean("selective")),
        gated(options.text("output") == "gated") {}

  double states() const { return channels * rows; }
  /// Bytes of the parameters as they are computed with.
  double weights() const { return (selective ? 2 : 3) * states() / batch * wide; }
};

class Mamba : public MixesTokens {
 public:
  Mamba(const std::string& name, const Options& chosen, const Problem& asked)
      : MixesTokens(name, chosen, asked, chosen.integer("chunk")) {
    const auto parameter = [&](const char* word, std::vector<std::int64_t> shape) {
      const auto type = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
      return register_parameter(word, at::zeros(shape, type), problem.gradient);
    };
    const std::int64_t heads = problem.heads, width = problem.value_dim;
    a_log = parameter("a_log", {heads, rows(), width});
    bias = parameter("bias", {heads, width});
    skip = parameter("skip", {heads, width});
    if (rank() > 0) step_weight = parameter("step_weight", {heads, rank(), width});
    if (!selective()) {
      input_weight = parameter("input_weight", {heads, rows(), width});
      read_weight = parameter("read_weight", {heads, rows(), width});
    }
  }

  /// The causal pattern alone is supported, where queries and keys are of the same tokens: a role
  /// of key tokens is one of kv_heads, a role of query tokens one of all heads.
  std::vector<Role> roles() const override {
    std::vector<Role> roles{{"value", Source::query_tokens, problem.value_dim}};
    if (selective()) {
      roles.push_back({"query", Source::key_tokens, rows()});
      roles.push_back({"key", Source::key_tokens, rows()});
      roles.push_back(rank() > 0 ? Role{"time_step", Source::key_tokens, rank()}
                                 : Role{"time_step", Source::query_tokens, problem.value_dim});
    }
    roles = feeding(std::move(roles), {"query", "key", "value", "time_step"});
    if (options.text("output") == "gated") {
      roles.push_back({"output_gate", Source::query_tokens, problem.value_dim});
    }
    return roles;
  }

  /// As the published code draws them: decays e^(-n delta) for n = 1 to N (S4D-Real), and steps
  /// that are uniform in their logarithm between 0.001 and 0.1 where tokens say 0.
  void draw_parameters(std::uint64_t seed) override {
    MixesTokens::draw_parameters(seed);
    const at::NoGradGuard no_grad;
    const auto exact = at::TensorOptions(at::kDouble).device(problem.device);
    a_log.copy_(at::arange(1, rows() + 1, exact).log().unsqueeze(1).expand_as(a_log));
    Problem wide = problem;
    wide.dtype = Dtype::float64;  // else 16-bit parameters are rounded twice
    const auto uniform = [&](const char* name, const Tensor& like, double low, double high) {
      return draw_uniform(seed, name, like.sizes().vec(), low, high, wide);
    };
    const Tensor step = uniform("bias", bias, std::log(0.001), std::log(0.1)).exp();
    bias.copy_(step + at::log(-at::expm1(-step)));
    skip.fill_(1);
    if (rank() > 0) {
      const double most = 1 / std::sqrt(static_cast<double>(rank()));
      step_weight.copy_(uniform("step_weight", step_weight, -most, most));
    }
    if (!selective()) {
      input_weight.fill_(1);
      read_weight.copy_(draw_normal(seed, "read_weight", read_weight.sizes().vec(), 1, wide));
    }
  }

  /// D N numbers a head, and those of `before`.
  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    const std::int64_t groups = selective() ? problem.kv_heads : 1;
    State state;
    state.tensors["memory"] = selective_scan::empty_state(
        batch, groups, rows(), problem.heads / groups * problem.value_dim, tensor);
    add_mix_state(state, batch, tensor);
    return state;
  }

  selective_scan::Call call(const Inputs& inputs) const {
    selective_scan::Call call;
    call.value = inputs["value"];
    if (selective()) {
      call.step = inputs["time_step"];
      call.input = inputs["key"];
      call.read = inputs["query"];
    }
    call.a_log = a_log;
    call.bias = bias;
    call.skip = skip;
    call.step_weight = step_weight;
    call.input_weight = input_weight;
    call.read_weight = read_weight;
    call.key_mask = inputs.key_mask;
    return call;
  }

  Tensor a_log;                      ///< [H, N, Dv]
  Tensor bias, skip;                 ///< [H, Dv]
  Tensor step_weight;                ///< [H, R, Dv], or undefined
  Tensor input_weight, read_weight;  ///< [H, N, Dv], of constants; else undefined

 private:
  bool selective() const { return options.boolean("selective"); }
  std::int64_t rows() const { return options.integer("state"); }
  std::int64_t rank() const { return options.integer("step_rank"); }
};

// ---- implementations

using MambaForm = Tensor (*)(const Mamba& self, const selective_scan::Call& call,
                             const Tensor& state);

Implementation mamba_implementation(const std::string& name, const std::string& title,
                                    MambaForm form) {
  return causal_implementation(
      "mamba", name, title, [form](Mechanism& mechanism, const Inputs& inputs, State* state) {
        const auto& self = dynamic_cast<const Mamba&>(mechanism);
        const Tensor memory = state != nullptr ? (*state)["memory"] : Tensor();
        Tensor y = form(self, self.call(inputs), memory);
        if (state != nullptr) state->position += y.size(2);
        if (self.options.text("output") == "gated") {
          const auto type = compute_type(y.scalar_type());
          y = (y.to(type) * at::silu(inputs["output_gate"].to(type))).to(y.scalar_type());
        }
        return Mixed{y, {}};
      });
}

/// The same for all forms, whatever is in memory at once.
Cost mamba_cost(const MambaSizes& n) {
  const double tokens = n.channels * n.length;  // of each channel
  const double numbers = tokens * n.rows;       // of each token's state
  Cost cost;
  // The decay, what is written (2) and the sum that is read (2); the skip.
  cost.model_flops = numbers * 5 + tokens * 2;
  cost.exponentials = n.states() / n.batch;
  cost.minimal_bytes = tokens * 2 * n.bytes;
  if (n.selective) {
    // The exponent; a step's bias and logarithm, and its product with the value.
    cost.model_flops += numbers + tokens * (3 + 2 * n.rank);
    cost.exponentials = numbers + tokens * 2;
    cost.minimal_bytes += n.groups * n.length * 2 * n.rows * n.bytes;
    cost.minimal_bytes += (n.rank > 0 ? n.groups * n.length * n.rank : tokens) * n.bytes;
  }
  if (n.gated) {
    cost.model_flops += tokens * 3;
    cost.exponentials += tokens;
    cost.minimal_bytes += tokens * n.bytes;
  }
  cost.executed_flops = cost.model_flops;
  cost.state_bytes = n.states() * n.wide;
  return cost;
}

/// Bytes of what `tokens` tokens have beside their states, and of the parameters: x, the step and
/// its parts, keys and queries, the output before and after it is turned.
double mamba_small_bytes(const MambaSizes& n, double tokens) {
  const double said = n.selective ? n.groups * 2 * n.rows : 0;
  return n.wide * tokens * (n.channels * 6 + said) + n.weights();
}

/// Of the output as a whole and its gate.
double gated_bytes(const MambaSizes& n) {
  return n.gated ? n.channels * n.length * n.wide * (n.bytes < n.wide ? 4 : 2) : 0;
}

Implementation composite() {
  Implementation implementation = mamba_implementation(
      "composite", "token by token, the states of all tokens in memory, in tensor operations",
      [](const Mamba&, const selective_scan::Call& call, const Tensor& state) {
        return selective_scan::materialised(call, state);
      });
  implementation.cost = [](const Options& options, const Problem& problem) {
    const MambaSizes n(options, problem);
    Cost cost = mamba_cost(n);
    // Decays, what is written, and the states, which are made one by one and then put side by side.
    const double states = n.states() * n.length * n.wide;
    const double rest = mamba_small_bytes(n, n.length) + gated_bytes(n);
    cost.workspace_bytes = (n.selective ? 4 : 3) * states + rest;
    cost.saved_bytes = (n.selective ? 3 : 2) * states + rest;
    return cost;
  };
  return implementation;
}

Implementation chunked() {
  Implementation implementation = mamba_implementation(
      "chunked", "chunks of tokens: their decays and reads at once, their states one by one",
      [](const Mamba& self, const selective_scan::Call& call, const Tensor& state) {
        return selective_scan::chunked(call, self.options.integer("chunk"), state);
      });
  implementation.cost = [](const Options& options, const Problem& problem) {
    const MambaSizes n(options, problem);
    const double chunk = std::min(static_cast<double>(options.integer("chunk")), n.length);
    const double state = n.states() * n.wide;
    Cost cost = mamba_cost(n);
    cost.workspace_bytes =
        ((n.selective ? 2 : 1) * chunk + 2) * state + mamba_small_bytes(n, chunk) + gated_bytes(n);
    // The state before each chunk.
    cost.saved_bytes = std::ceil(n.length / chunk) * state + n.weights() + gated_bytes(n);
    cost.backward_flops = 3.5;  // a chunk is computed again
    return cost;
  };
  implementation.growth.workspace_in_length = 0;
  implementation.rank = 10;
  return implementation;
}

Option gate_option() {
  return Option::text("output", {"plain", "gated"},
                      "plain: the mix alone; gated: that times silu of a projection of the token, "
                      "as in the published block");
}

}  // namespace

Entry mamba() {
  Entry entry;
  entry.name = "mamba";
  entry.title =
      "Mamba's selective state space (S6): a few decays per channel, at rates each token says";
  entry.citation =
      "Gu, Dao 2023, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, "
      "arXiv:2312.00752; with selective=false Gu, Gupta, Goel, Re 2022, On the Parameterization "
      "and Initialization of Diagonal State Space Models, arXiv:2206.11893";
  entry.formula =
      "h_t,n = e^(-A_n delta_t) * h_{t-1},n + delta_t * v_t k_t,n,  delta_t = softplus(x_t + "
      "bias)\n"
      "y_t = sum_n q_t,n h_t,n + skip * v_t\n"
      "selective=false: x_t = 0, and parameters of each channel in place of k_t,n and q_t,n\n"
      "* a product of channels; A = e^a_log, bias, skip parameters of each channel";
  entry.options = {
      Option::integer("state", 16, "numbers of a channel's state, the paper's N", 1),
      Option::boolean("selective", true,
                      "whether steps, keys (B) and queries (C) come from the token (S6); false: "
                      "learned constants of each channel (S4D-Real)"),
      Option::integer("step_rank", 0,
                      "numbers of a key head's token that the steps of its channels are made of by "
                      "a weight; 0 = a number for each channel, projected from the token",
                      0),
      gate_option()};
  for (Option& each : token_mix_options("all roles but the gate's")) {
    entry.options.push_back(std::move(each));
  }
  entry.options.push_back(chunk_option());
  entry.differs_from = {
      {"the published block puts a short convolution and SiLU behind the projection of the values, "
       "and projects B, C and step sizes from what these give",
       std::string(gated_state::kBeforeSaid) +
           "; where else a role comes from does not change the mix"},
      {"the published block has one B and one C for all channels, and twice the model's width of "
       "them",
       "kv_heads=1, and a value_dim of twice head_dim"},
      {"the published block makes step sizes of width / 16 numbers a token",
       "step_rank=width/16 with kv_heads=1"},
      {"the published block multiplies the output by silu of another projection", "output=gated"},
      {"eq. 4 of the paper, as S4D, holds the input for the step, (1 - e^(-A delta)) / A B; its "
       "published code has delta B, and so has this",
       "not available; constant B can hold the factor"},
      {"S4D's numbers are complex (S4D-Lin, S4D-Inv: the S4D of LAVO's tables), so that its states "
       "turn as they decay, and it may look both ways; selective=false is its real case alone",
       "not available"},
      {"S4D computes its constants' convolution by Fourier transforms",
       "not available: the recurrence gives the same numbers"}};
  entry.claims.rows_sum_to_one = false;
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::causal};
  entry.derive = [](const Options& options, const Problem&) {
    if (!options.boolean("selective") && options.integer("step_rank") > 0) {
      throw UsageError(
          "mamba: step_rank is of steps that tokens say, and with selective=false they are "
          "constants; leave step_rank out or choose selective=true");
    }
    return options;
  };
  entry.supports = [](const Options& options, const Problem& problem) {
    const Support support = gated_state::looks_back_only("mamba", problem);
    return support ? token_mix_support("mamba", options, problem) : support;
  };
  entry.make = maker<Mamba>("mamba");
  entry.implementations = {composite(), chunked()};
  entry.aliases = {
      {"s4d_real",
       "mamba",
       "auto",
       {{"selective", false}},
       "S4D-Real: a diagonal state space whose steps, inputs and reads are constants"}};
  return entry;
}

}  // namespace attnbench::mechanisms
