// The selective state space of Mamba, Gu and Dao 2023: S6, each channel of which has a state of its
// own, a few numbers that decay at rates the token says. B, C and x of the paper are key, query and
// value. With learned constants in place of what tokens say it is S4D, Gu et al. 2022.
#include <cmath>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/selective_scan/selective_scan.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

bool is_complex(const Options& options) { return options.text("turning") != "none"; }

selective_scan::Sizes mamba_sizes(const Options& options, const Problem& problem) {
  selective_scan::Sizes sizes;
  sizes.batch = static_cast<double>(problem.batch);
  sizes.length = static_cast<double>(problem.length);
  sizes.groups = sizes.batch * static_cast<double>(problem.kv_heads);
  sizes.channels = sizes.batch * static_cast<double>(problem.heads * problem.value_dim);
  sizes.rows = static_cast<double>(options.integer("state"));
  sizes.rank = static_cast<double>(options.integer("step_rank"));
  sizes.bytes = static_cast<double>(bytes_of(problem.dtype));
  sizes.selective = options.boolean("selective");
  sizes.complex = is_complex(options);
  return sizes;
}

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
    if (is_complex(options)) {
      turn = parameter("turn", {heads, rows(), width});
      read_turn = parameter("read_turn", {heads, rows(), width});
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

  /// As published code draws them: exponents -n for n = 1 to N (S4D-Real), and steps that are
  /// uniform in their logarithm between 0.001 and 0.1 where tokens say 0.
  void draw_parameters(std::uint64_t seed) override {
    MixesTokens::draw_parameters(seed);
    const at::NoGradGuard no_grad;
    Problem wide = problem;
    wide.dtype = Dtype::float64;  // else 16-bit parameters are rounded twice
    const auto uniform = [&](const char* name, const Tensor& like, double low, double high) {
      return draw_uniform(seed, name, like.sizes().vec(), low, high, wide);
    };
    a_log.copy_(by_number([](double n) { return std::log(n + 1); }));
    const Tensor step = uniform("bias", bias, std::log(0.001), std::log(0.1)).exp();
    bias.copy_(step + at::log(-at::expm1(-step)));
    skip.fill_(1);
    if (rank() > 0) {
      const double most = 1 / std::sqrt(static_cast<double>(rank()));
      step_weight.copy_(uniform("step_weight", step_weight, -most, most));
    }
    if (selective()) return;
    // Of complex numbers the real and the imaginary part have half the variance each.
    const double deviation = is_complex(options) ? std::sqrt(0.5) : 1;
    const auto normal = [&](const char* name, const Tensor& like) {
      return draw_normal(seed, name, like.sizes().vec(), deviation, wide);
    };
    input_weight.fill_(1);
    read_weight.copy_(normal("read_weight", read_weight));
    if (!is_complex(options)) return;
    read_turn.copy_(normal("read_turn", read_turn));
    a_log.fill_(std::log(0.5));
    // S4D-Lin and S4D-Inv of that paper, whose N counts conjugates.
    const double pi = std::acos(-1.0), all = 2 * static_cast<double>(rows());
    const bool inverse = options.text("turning") == "inverse";
    turn.copy_(
        by_number([=](double n) { return inverse ? all / pi * (all / (2 * n + 1) - 1) : pi * n; }));
  }

  /// N numbers for each channel, and those of `before`.
  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    State state;
    state.tensors["memory"] = selective_scan::empty_state(batch, selective() ? problem.kv_heads : 1,
                                                          a_log, is_complex(options), tensor);
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
    call.turn = turn;
    call.read_turn = read_turn;
    call.key_mask = inputs.key_mask;
    return call;
  }

  Tensor a_log;                      ///< [H, N, Dv]
  Tensor bias, skip;                 ///< [H, Dv]
  Tensor step_weight;                ///< [H, R, Dv], or undefined
  Tensor input_weight, read_weight;  ///< [H, N, Dv], of constants; else undefined
  Tensor turn, read_turn;            ///< [H, N, Dv], of complex constants; else undefined

 private:
  /// What `of` makes of n = 0 to N - 1, the same for all channels: [N, 1].
  template <class Of>
  Tensor by_number(const Of& of) const {
    std::vector<double> all;
    for (std::int64_t n = 0; n < rows(); ++n) all.push_back(of(static_cast<double>(n)));
    return at::tensor(all, at::kDouble).unsqueeze(1);
  }
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

/// The cost of a mix and of the gate of its output.
Cost gated_cost(Cost mix, const Options& options, const Problem& problem) {
  if (options.text("output") != "gated") return mix;
  const auto sizes = mamba_sizes(options, problem);
  const double numbers = sizes.channels * sizes.length;
  mix.model_flops += numbers * 3;
  mix.executed_flops += numbers * 3;
  mix.exponentials += numbers;
  mix.minimal_bytes += numbers * sizes.bytes;
  // Both as they are computed with, where inputs have 16 bits; silu and the product.
  const double more = numbers * sizes.wide() * (sizes.bytes < 4 ? 4 : 2);
  mix.workspace_bytes += more;
  mix.saved_bytes += more;
  return mix;
}

Implementation composite() {
  Implementation implementation = mamba_implementation(
      "composite", "token by token, the states of all tokens in memory, in tensor operations",
      [](const Mamba&, const selective_scan::Call& call, const Tensor& state) {
        return selective_scan::materialised(call, state);
      });
  implementation.cost = [](const Options& options, const Problem& problem) {
    return gated_cost(materialised_cost(mamba_sizes(options, problem)), options, problem);
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
    const auto chunk = static_cast<double>(options.integer("chunk"));
    return gated_cost(chunked_cost(mamba_sizes(options, problem), chunk), options, problem);
  };
  implementation.growth.workspace_in_length = 0;
  implementation.rank = 10;
  return implementation;
}

Support mamba_kernel_supports(const Options& options, const Problem& problem) {
  const Support causal = only_causal("mamba", problem);
  if (!causal) return causal;
  if (!options.boolean("selective")) {
    return Support::no("mamba: the kernel is of what tokens say; with selective=false use chunked");
  }
  return on_cpu_kernels(problem);
}

Implementation fused() {
  Implementation implementation = mamba_implementation(
      "fused", "in one kernel, some numbers of each channel's state in registers",
      [](const Mamba&, const selective_scan::Call& call, const Tensor& state) {
        return selective_scan::fused(call, state);
      });
  implementation.supports = mamba_kernel_supports;
  implementation.cost = [](const Options& options, const Problem& problem) {
    return gated_cost(fused_cost(mamba_sizes(options, problem)), options, problem);
  };
  implementation.rank = 20;
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
      "selective=false: x_t = 0, and parameters of each channel in place of k_t,n and q_t,n; "
      "turning: -A_n + i turn_n in place of -A_n, and 2 Re(q_n h_t,n)\n"
      "* a product of channels; A = e^a_log, bias, skip, turn parameters of each channel";
  entry.options = {
      Option::integer("state", 16, "numbers of a channel's state, the paper's N", 1),
      Option::boolean("selective", true,
                      "whether steps, keys (B) and queries (C) come from the token (S6); false: "
                      "learned constants of each channel (S4D)"),
      Option::text("turning", {"none", "linear", "inverse"},
                   "of constants: none: real numbers (S4D-Real); linear, inverse: complex ones, "
                   "whose states turn as they decay, drawn as S4D-Lin or S4D-Inv; each stands for "
                   "itself and its conjugate, half of the paper's N"),
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
      {"S4D computes the convolution of its constants by Fourier transforms, may look both ways, "
       "and learns a complex B; LAVO's tables have S4D-Inv of N = 64",
       "the recurrence gives the convolution's numbers, and C holds what B may turn; "
       "turning=inverse with state=32 is LAVO's. Both ways are not available"}};
  entry.claims.rows_sum_to_one = false;
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::causal};
  entry.derive = [](const Options& options, const Problem&) {
    if (options.boolean("selective") && is_complex(options)) {
      throw UsageError(
          "mamba: turning is of constants, and with selective=true tokens say them; leave turning "
          "out or choose selective=false");
    }
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
  entry.implementations = {composite(), chunked(), fused()};
  const auto fixed = [](const char* name, const char* turning, const char* title) {
    return Alias{
        name, "mamba", "auto", {{"selective", false}, {"turning", std::string(turning)}}, title};
  };
  entry.aliases = {
      fixed("s4d", "linear",
            "S4D-Lin: a diagonal state space of complex constants, which decay and turn"),
      fixed("s4d_real", "none", "S4D-Real: a diagonal state space of real constants")};
  return entry;
}

}  // namespace attnbench::mechanisms
