// HGRN2, Qin et al. 2024: a gated recurrence whose state is a matrix, written with what its gates
// let go; b is the lower bound of the layer's forget gates.
#include <cmath>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

class Hgrn2 : public gated_state::GatedState {
 public:
  using GatedState::GatedState;

  std::vector<Role> roles() const override {
    return finished_roles({{"query", Source::query_tokens, problem.head_dim},
                           {"gate", Source::key_tokens, problem.head_dim},
                           {"value", Source::key_tokens, problem.value_dim}},
                          {"query", "gate", "value"});
  }
};

gated_state::Call hgrn2_call(const Mechanism& mechanism, const Inputs& inputs, std::int64_t) {
  const auto type = compute_type(inputs["value"].scalar_type());
  const Tensor& mask = inputs.key_mask;
  const double bound = mechanism.options.number("lower_bound");
  const Tensor logit = without_padding(inputs["gate"], mask).to(type);
  gated_state::Call call;
  call.query = at::silu(inputs["query"].to(type)) /
               std::sqrt(static_cast<double>(mechanism.problem.head_dim));
  // 1 - f, which keeps its digits where f is near 1.
  call.key = without_padding(at::sigmoid(-logit) * (1 - bound), mask);
  call.value = without_padding(inputs["value"], mask);
  // log f by the number that is exact: near 1 by 1 - f, near 0 by the logarithm of the sigmoid.
  const Tensor decay =
      bound > 0 ? at::log1p(-at::sigmoid(-logit) * (1 - bound)) : at::log_sigmoid(logit);
  call.log_decay = without_padding(decay, mask);
  return call;
}

}  // namespace

Entry hgrn2() {
  Entry entry = gated_state::entry_of({"hgrn2", hgrn2_call, gated_state::channel_gated_sizes});
  entry.title = "HGRN2: a gated recurrence whose keys are one minus its forget gates";
  entry.citation =
      "Qin, Yang, Sun, Shen, Li, Sun, Zhong 2024, HGRN2: Gated Linear RNNs with State Expansion, "
      "arXiv:2404.07904";
  entry.formula =
      "S_t = diag(f_t) S_{t-1} + (1 - f_t) v_t^T,  f_t = b + (1 - b) sigmoid(x_t)\n"
      "y_t = S_t^T silu(q_t) / sqrt(D)";
  entry.options = gated_state::options(
      {Option::number("lower_bound", 0,
                      "of the forget gates; the paper learns one for each layer, 0 "
                      "for the first",
                      0, 0.999)},
      "queries, gates and values");
  entry.differs_from = {{"the paper learns the lower bounds, growing from layer to layer",
                         "not available: lower_bound is a number that all heads share"},
                        {"the published layer normalises the output", gated_state::kOutputSaid}};
  entry.make = maker<Hgrn2>("hgrn2");
  return entry;
}

}  // namespace attnbench::mechanisms
