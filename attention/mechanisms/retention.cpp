// Retention, Sun et al. 2023 (RetNet): attention without a softmax whose weights fall by a fixed
// factor per token. With another choice of gamma and no rotation it is Lightning Attention, Qin et
// al. 2024.
#include <cmath>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

/// The base of the angles by which `xpos` rotates.
constexpr double kRotaryBase = 10000;

class Retention : public gated_state::GatedState {
 public:
  using GatedState::GatedState;

  std::vector<Role> roles() const override { return finished_roles(query_key_value(problem)); }
};

/// log gamma_h, in double.
std::vector<double> log_decays(const Mechanism& mechanism) {
  const double said = mechanism.options.number("gamma");
  const std::int64_t heads = mechanism.problem.heads;
  std::vector<double> logs;
  for (std::int64_t h = 0; h < heads; ++h) {
    const double head = static_cast<double>(h);
    if (said > 0) {
      logs.push_back(std::log(said));
    } else if (mechanism.options.text("decay") == "xpos") {
      logs.push_back(std::log1p(-std::exp2(-5 - head)));
    } else {
      logs.push_back(-8 * head / static_cast<double>(heads));
    }
  }
  return logs;
}

gated_state::Call retention_call(const Mechanism& mechanism, const Inputs& inputs,
                                 std::int64_t first) {
  gated_state::Call call;
  const auto type = compute_type(inputs["value"].scalar_type());
  call.scale = 1 / std::sqrt(static_cast<double>(mechanism.problem.head_dim));
  call.query = inputs["query"].to(type);
  call.key = without_padding(inputs["key"], inputs.key_mask).to(type);
  call.value = without_padding(inputs["value"], inputs.key_mask);
  if (mechanism.options.text("decay") == "xpos") {
    const RotaryTable table = rotary_table(call.query, first, kRotaryBase);
    call.query = rotated(call.query, table, Rotation::forward);
    call.key = rotated(call.key, table, Rotation::forward);
  }
  const Tensor logs = at::tensor(log_decays(mechanism), at::kDouble);
  call.log_decay = logs.to(call.query.options().requires_grad(false))
                       .view({1, -1, 1, 1})
                       .expand({call.value.size(0), -1, call.value.size(2), 1});
  return call;
}

}  // namespace

Entry retention() {
  Entry entry = gated_state::entry_of(
      {"retention", retention_call, [](const Options&, const Problem& problem) {
         return gated_state::sizes_of(problem, problem.head_dim);
       }});
  entry.title = "Retention: linear attention whose weights fall by a factor per token";
  entry.citation =
      "Sun, Dong, Huang, Ma, Xia, Xue, Wang, Wei 2023, Retentive Network: A Successor to "
      "Transformer for Large Language Models, arXiv:2307.08621, section 2.1";
  entry.formula =
      "y_t = 1/sqrt(D) sum_{s<=t} gamma_h^(t-s) (q_t.k_s) v_s\n"
      "decay=xpos: q_t and k_s rotated by t and s times their angles, gamma_h = 1 - 2^-(5 + h)\n"
      "decay=fixed: not rotated, gamma_h = exp(-8 h / H)";
  entry.options = gated_state::options({
      Option::text("decay", {"xpos", "fixed"},
                   "xpos: RetNet's, gamma = 1 - 2^-(5 + head), queries and keys rotated by their "
                   "positions; fixed: Lightning Attention's, gamma = exp(-8 head / heads), not "
                   "rotated"),
      Option::number("gamma", 0, "the factor per token of every head; 0 = as `decay` says", 0, 1),
  });
  entry.differs_from = {
      {"RetNet normalises each head's output and gates it by swish(x W)", gated_state::kOutputSaid},
      {"Lightning Attention multiplies log gamma by 1 - layer / layers; here it is that of the "
       "first layer",
       "gamma says any other"}};
  entry.make = maker<Retention>("retention");
  return entry;
}

}  // namespace attnbench::mechanisms
