// The delta rule: a state that, before it stores a value under a key, erases a share beta of what
// it holds there, with keys and queries of norm 1. gate none is DeltaNet (Yang et al. 2024), scalar
// is Gated DeltaNet (Yang, Kautz, Hatamizadeh 2024), channel is Kimi Delta Attention (Kimi Team
// 2025).
#include <cmath>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

/// Log decays of a token and head.
std::int64_t delta_gates(const Options& options, const Problem& problem) {
  const std::string& gate = options.text("gate");
  return gate == "none" ? 0 : gate == "scalar" ? 1 : problem.head_dim;
}

class Delta : public gated_state::GatedState {
 public:
  Delta(const std::string& name, const Options& chosen, const Problem& asked)
      : GatedState(name, chosen, asked) {
    const std::int64_t gates = delta_gates(options, problem);
    if (gates == 0) return;
    const auto type = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
    a_log = register_parameter("a_log", at::zeros({problem.heads, 1}, type), problem.gradient);
    bias = register_parameter("bias", at::zeros({problem.heads, gates}, type), problem.gradient);
  }

  std::vector<Role> roles() const override {
    std::vector<Role> roles = query_key_value(problem);
    roles.push_back({"beta", Source::key_tokens, 1});
    const std::int64_t gates = delta_gates(options, problem);
    if (gates > 0) roles.push_back({"gate", Source::key_tokens, gates});
    return finished_roles(std::move(roles));
  }

  void draw_parameters(std::uint64_t seed) override {
    GatedState::draw_parameters(seed);
    if (a_log.defined()) gated_state::draw_decay_parameters(seed, a_log, bias, problem);
  }

  Tensor a_log, bias;  ///< [H, 1] and [H, 1 or D]; undefined without a gate
};

gated_state::Call delta_call(const Mechanism& mechanism, const Inputs& inputs, std::int64_t) {
  const auto& self = dynamic_cast<const Delta&>(mechanism);
  const auto type = compute_type(inputs["value"].scalar_type());
  const Tensor& mask = inputs.key_mask;
  const double epsilon = self.options.number("epsilon");
  gated_state::Call call;
  call.query = gated_state::normalised(inputs["query"].to(type), epsilon) /
               std::sqrt(static_cast<double>(self.problem.head_dim));
  call.key = gated_state::normalised(without_padding(inputs["key"], mask).to(type), epsilon);
  call.beta = at::sigmoid(without_padding(inputs["beta"], mask).to(type)) *
              static_cast<double>(self.options.integer("beta_limit"));
  call.value = without_padding(inputs["value"], mask).to(type) * call.beta;
  if (self.a_log.defined()) {
    call.log_decay = gated_state::learned_decay(inputs["gate"], self.a_log, self.bias, mask);
  }
  return call;
}

gated_state::StateSizes delta_sizes(const Options& options, const Problem& problem) {
  gated_state::StateSizes sizes = gated_state::sizes_of(problem, problem.head_dim);
  sizes.gates = static_cast<double>(delta_gates(options, problem));
  sizes.decays = sizes.gates > 0;
  sizes.rates = 1;
  return sizes;
}

Alias delta_alias(const std::string& name, const std::string& gate, const std::string& title) {
  return {name, "delta", "auto", {{"gate", gate}}, title};
}

}  // namespace

Entry delta() {
  Entry entry = gated_state::entry_of({"delta", delta_call, delta_sizes});
  entry.title = "The delta rule: DeltaNet, Gated DeltaNet, Kimi Delta Attention";
  entry.citation =
      "Yang, Wang, Zhang, Shen, Kim 2024, Parallelizing Linear Transformers with the Delta Rule "
      "over Sequence Length, arXiv:2406.06484; Yang, Kautz, Hatamizadeh 2024, Gated Delta "
      "Networks, arXiv:2412.06464; Kimi Team 2025, Kimi Linear, arXiv:2510.26692";
  entry.formula =
      "S_t = (I - beta_t k_t k_t^T) diag(e^g_t) S_{t-1} + beta_t k_t v_t^T,  |q_t| = |k_t| = 1\n"
      "y_t = S_t^T q_t / sqrt(D),  beta_t = beta_limit sigmoid(x_t),  g_t = -e^a softplus(z_t + b)";
  entry.options = gated_state::options({
      Option::text("gate", {"none", "scalar", "channel"},
                   "decay of the state: none (DeltaNet), one per head (Gated DeltaNet), one per "
                   "channel of the key (Kimi Delta Attention)"),
      Option::integer("beta_limit", 1,
                      "beta lies in (0, beta_limit); with 2 a state may change its sign", 1, 2),
      Option::number("epsilon", 1e-6, "added to |x|^2 before queries and keys are divided by |x|",
                     1e-12),
  });
  entry.differs_from = {
      {"the published layers put a short convolution and SiLU behind each projection of queries, "
       "keys and values",
       gated_state::kBeforeSaid},
      {"the published layers normalise the output, and those with a gate of the state gate it",
       gated_state::kOutputSaid}};
  entry.make = maker<Delta>("delta");
  entry.aliases = {delta_alias("gated_delta", "scalar", "Gated DeltaNet: the delta rule, gated"),
                   delta_alias("kda", "channel", "Kimi Delta Attention: a gate per channel")};
  return entry;
}

}  // namespace attnbench::mechanisms
