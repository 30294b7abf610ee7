// Forgetting attention, Lin et al. 2025 (FoX): softmax attention whose scores fall by the
// logarithms of a forget gate per head and token, all those between a key and its query.
#include <algorithm>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

/// What the norm of the output adds to the mean square, as in the authors' configurations.
constexpr double kFoxOutputEpsilon = 1e-6;

class Fox : public Mechanism {
 public:
  Fox(const std::string& name, const Options& chosen, const Problem& asked)
      : Mechanism(name, chosen, asked) {
    const auto type = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
    forget_bias =
        register_parameter("forget_bias", at::zeros({problem.heads, 1}, type), problem.gradient);
  }

  /// Queries and keys are of the same tokens: a role of key tokens is one of kv_heads, a role of
  /// query tokens one of all heads.
  std::vector<Role> roles() const override {
    std::vector<Role> roles = query_key_value(problem);
    roles.push_back({"forget_gate", Source::query_tokens, 1});
    if (options.text("output") == "gated") {
      roles.push_back({"output_gate", Source::query_tokens, problem.value_dim});
    }
    return roles;
  }

  void draw_parameters(std::uint64_t) override {
    const at::NoGradGuard no_grad;
    forget_bias.zero_();
  }

  /// All keys and values seen, and log decays [B, H, capacity], whose sums float32 would not hold.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    State state;
    add_cache(state, problem, batch, capacity, tensor);
    state.tensors["log_decay"] =
        at::zeros({batch, problem.heads, capacity}, tensor.dtype(at::kDouble));
    return state;
  }

  Tensor forget_bias;  ///< [H, 1]
};

SoftmaxCall fox_call(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  const auto& self = dynamic_cast<const Fox&>(mechanism);
  const Tensor& mask = inputs.key_mask;
  SoftmaxCall call{inputs["query"], inputs["key"], inputs["value"], mask, scale_of(mechanism)};
  const Tensor logits = without_padding(inputs["forget_gate"], mask).to(at::kDouble) +
                        self.forget_bias.to(at::kDouble).unsqueeze(1);
  // Padding forgets nothing.
  call.log_decay = without_padding(at::log_sigmoid(logits), mask).squeeze(-1).cumsum(2);
  if (state != nullptr) take_into_cache("fox", *state, call);
  call.right = 0;
  call.offset = call.key_length() - call.length();
  return call;
}

/// y as the option `output` says. In double: in narrow heads the norm's gradient all but cancels.
Tensor fox_output(const Mechanism& mechanism, const Inputs& inputs, const Tensor& y) {
  const std::string& kind = mechanism.options.text("output");
  if (kind == "plain") return y;
  Tensor output = y.to(at::kDouble);
  output = output * at::rsqrt((output * output).mean(-1, true) + kFoxOutputEpsilon);
  if (kind == "gated") output = output * at::sigmoid(inputs["output_gate"].to(at::kDouble));
  return output.to(y.scalar_type());
}

/// A form of softmax with decays, which take `own` bytes more: of workspace, and kept for backward.
struct FoxBytes {
  double workspace, saved;
};
Implementation fox_implementation(
    Implementation form, const std::string& title,
    const std::function<FoxBytes(const Options&, const Problem&)>& own) {
  form.title = title;
  form.mix = [mix = form.mix](Mechanism& mechanism, const Inputs& inputs, State* state) {
    Mixed mixed = mix(mechanism, inputs, state);
    mixed.output = fox_output(mechanism, inputs, mixed.output);
    return mixed;
  };
  form.cost = [cost_of = form.cost, own](const Options& options, const Problem& problem) {
    const auto bytes = static_cast<double>(bytes_of(problem.dtype));
    const auto heads = static_cast<double>(problem.batch * problem.heads);
    const double tokens = heads * static_cast<double>(problem.length);
    Cost cost = cost_of(options, problem);
    cost.executed_flops += 2 * cost.exponentials + tokens;
    // A sum for each key, a sum for each score; a query's own changes nothing.
    cost.model_flops += heads * static_cast<double>(visible_pairs(problem)) + tokens;
    cost.exponentials += 2 * tokens;
    cost.minimal_bytes += tokens * bytes;
    // Logits, log gates and sums in double.
    cost.workspace_bytes += 3 * tokens * 8 + own(options, problem).workspace;
    cost.saved_bytes += 3 * tokens * 8 + own(options, problem).saved;
    cost.state_bytes += tokens * 8;
    return gated_state::finished_cost(cost, options, problem);
  };
  return form;
}

/// Differences in double and as they are added are in memory before the scores are.
FoxBytes composite_bytes(const Options&, const Problem& problem) {
  const auto length = static_cast<double>(problem.length);
  const double pairs = static_cast<double>(problem.batch * problem.heads) * length * length;
  const auto bytes = static_cast<double>(bytes_of(problem.dtype));
  return {pairs * std::max(0.0, 12 - 2 * bytes), bytes == 2 ? 4 * pairs : 0};
}

/// A block's, beside its scores; and the output before it is rounded to 16 bits.
FoxBytes chunked_bytes(const Options& options, const Problem& problem) {
  const auto rows = std::min(options.integer("query_chunk"), problem.length);
  const auto keys = std::min(options.integer("key_chunk"), problem.length);
  const auto heads = static_cast<double>(problem.batch * problem.heads);
  const double output = heads * static_cast<double>(problem.length * problem.value_dim);
  const double wide = bytes_of(problem.dtype) == 2 ? 4 * output : 0;
  const double block = heads * static_cast<double>(rows * keys);
  return {block * (problem.dtype == Dtype::float64 ? 8 : 12) + wide, wide};
}

}  // namespace

Entry fox() {
  Entry entry;
  entry.name = "fox";
  entry.title = "Forgetting attention (FoX): softmax attention with a forget gate per head";
  entry.citation =
      "Lin, Nikishin, He, Courville 2025, Forgetting Transformer: Softmax Attention with a Forget "
      "Gate, arXiv:2503.02130";
  entry.formula =
      "y_t = sum_s softmax_s(scale q_t.k_s + c_t - c_s) v_s,  s <= t\n"
      "c_t = c_{t-1} + log sigmoid(x_t + b_h)\n"
      "output=normalised: each y_t divided by sqrt(mean y_t^2 + 1e-6); gated: that times "
      "sigmoid(g_t)";
  entry.options = chunk_options(
      {scale_option(),
       Option::text(
           "output", {"plain", "normalised", "gated"},
           "of each head and token: plain: the mix alone, as in FoX (LLaMA); normalised: "
           "divided by its root mean square; gated: that times the sigmoid of a projection "
           "of the token, as in FoX (Pro)")},
      256, 1024);
  entry.differs_from = {
      {"FoX (Pro) gates the output by a sigmoid after a norm of each head, and so may "
       "flash-linear-attention's layer, without the norm",
       "output=gated is FoX (Pro)'s; its norm has no weights, which the output projection can "
       "hold; a gate without a norm is not available"},
      {"FoX (Pro) normalises queries and keys, and mixes each key and value with that of the token "
       "before by a gate (KV-shift)",
       "not available; FoX (LLaMA) has neither"},
      {"published code sums log gates in float32; here they are summed and subtracted in double",
       "not available; it differs in the last digits alone, the more of them the longer the "
       "sequence"},
      {"the authors' kernel can leave out keys whose weights must be negligible (adaptive "
       "computation pruning, arXiv:2504.06949)",
       "not available: all keys are computed"}};
  entry.claims.rows_sum_to_one = false;  // of a plain output alone, as linear_in_value
  entry.claims.linear_in_value = false;
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::causal};
  entry.supports = [](const Options&, const Problem& problem) {
    return gated_state::looks_back_only("fox", problem);
  };
  entry.make = maker<Fox>("fox");
  const BandedMechanism softmax{
      [](const Options&, const Problem&) {
        return Window{unlimited, 0};
      },
      fox_call, [](const Options&, const Problem& problem) { return problem.length; }};
  entry.implementations = {
      fox_implementation(composite_softmax(softmax),
                         "whole matrices of scores and decays in tensor operations",
                         composite_bytes),
      fox_implementation(chunked_softmax(softmax),
                         "chunks in tensor operations, Rabe and Staats 2021", chunked_bytes)};
  return entry;
}

}  // namespace attnbench::mechanisms
