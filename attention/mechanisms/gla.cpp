// Gated linear attention, Yang et al. 2024: a state whose rows decay at rates that each token says.
#include <cmath>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

class Gla : public gated_state::GatedState {
 public:
  using GatedState::GatedState;

  std::vector<Role> roles() const override {
    std::vector<Role> roles = query_key_value(problem);
    roles.push_back({"gate", Source::key_tokens, problem.head_dim});
    return finished_roles(std::move(roles));
  }
};

gated_state::Call gla_call(const Mechanism& mechanism, const Inputs& inputs, std::int64_t) {
  const auto type = compute_type(inputs["value"].scalar_type());
  const at::Tensor& mask = inputs.key_mask;
  gated_state::Call call;
  call.query =
      inputs["query"].to(type) / std::sqrt(static_cast<double>(mechanism.problem.head_dim));
  call.key = without_padding(inputs["key"], mask).to(type);
  call.value = without_padding(inputs["value"], mask);
  const at::Tensor gate = at::log_sigmoid(without_padding(inputs["gate"], mask).to(type));
  call.log_decay = without_padding(gate / mechanism.options.number("gate_temperature"), mask);
  return call;
}

}  // namespace

Entry gla() {
  Entry entry = gated_state::entry_of({"gla", gla_call, gated_state::channel_gated_sizes});
  entry.title = "Gated linear attention: a decay for each channel of the key";
  entry.citation =
      "Yang, Wang, Shen, Panda, Kim 2024, Gated Linear Attention Transformers with "
      "Hardware-Efficient Training, arXiv:2312.06635";
  entry.formula =
      "S_t = diag(e^g_t) S_{t-1} + k_t v_t^T,  g_t = log sigmoid(x_t) / tau\n"
      "y_t = S_t^T q_t / sqrt(D)";
  entry.options = gated_state::options({
      Option::number("gate_temperature", 16,
                     "the paper's tau: log decays are log sigmoid(x) divided by it", 1e-3),
  });
  entry.differs_from = {
      {"the paper projects the gates by a product of rank 16 with a bias; here they are a "
       "projection of full rank",
       "not available; which gates can be said does not change the mix"},
      {"the paper normalises the output and gates it by swish(x W)", gated_state::kOutputSaid}};
  entry.make = maker<Gla>("gla");
  return entry;
}

}  // namespace attnbench::mechanisms
