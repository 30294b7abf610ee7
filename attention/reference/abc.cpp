// ABC by its definition, pair by pair: Peng et al. 2022, eq. 3-4, with weights that are softmaxes
// over the tokens seen,
//   K_t,l = sum_s e^c_sl k_s / sum_s e^c_sl,  V_t,l likewise,  s visible,
//   y_t = sum_l softmax_l(q_t . K_t,l / sqrt(D)) V_t,l,
// slots that no token was written to left out of the softmax; and gated slot attention, Zhang et
// al. 2024, eq. 5-7, where instead K_t,l = a_t,l K_{t-1,l} + (1 - a_t,l) k_t, a = sigmoid(c)^(1/8).
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/reference/recurrence.hpp"

namespace attnbench::reference {
namespace {

/// The weight of every token in slot `l` of a query at `t`; all 0 if no token is visible.
std::vector<double> slot_shares(const Options& options, const Problem& problem,
                                const ReferenceInputs& inputs, const RowIndex& at, std::int64_t l) {
  const Array& slots = inputs.roles.at("slots");
  const std::int64_t keys = problem.pattern == Pattern::causal ? at.t + 1 : problem.key_length;
  std::vector<double> shares(static_cast<std::size_t>(keys), 0.0);
  double maximum = -std::numeric_limits<double>::infinity();
  double total = 0;
  for (std::int64_t s = 0; s < keys; ++s) {
    if (!inputs.visible(at.b, s, problem.key_length)) continue;
    const double logit = slots.row(at.b, at.h, s)[l];
    if (options.boolean("gated")) {
      const double kept = std::exp(-softplus(-logit) / 8);
      for (double& each : shares) each *= kept;
      shares[static_cast<std::size_t>(s)] = -std::expm1(-softplus(-logit) / 8);
    } else {
      maximum = std::max(maximum, logit);
    }
  }
  if (options.boolean("gated") || std::isinf(maximum)) return shares;
  for (std::int64_t s = 0; s < keys; ++s) {
    if (!inputs.visible(at.b, s, problem.key_length)) continue;
    const double weight = std::exp(slots.row(at.b, at.h, s)[l] - maximum);
    shares[static_cast<std::size_t>(s)] = weight;
    total += weight;
  }
  for (double& each : shares) each /= total;
  return shares;
}

std::vector<double> pooled(const std::vector<double>& shares, const Array& from,
                           const RowIndex& at) {
  std::vector<double> sum(static_cast<std::size_t>(from.shape[3]), 0.0);
  for (std::size_t s = 0; s < shares.size(); ++s) {
    if (shares[s] == 0) continue;  // padding may hold anything
    for (std::size_t d = 0; d < sum.size(); ++d) {
      sum[d] += shares[s] * from.row(at.b, at.h, static_cast<std::int64_t>(s))[d];
    }
  }
  return sum;
}

std::vector<double> abc_row(const Options& options, const Problem& problem,
                            const ReferenceInputs& inputs, const RowIndex& at) {
  const Array& value = inputs.roles.at("value");
  const double* q = inputs.roles.at("query").row(at.b, at.h, at.t);
  std::vector<double> y(static_cast<std::size_t>(value.shape[3]), 0.0);
  std::vector<double> logits;
  std::vector<std::vector<double>> values;
  for (std::int64_t l = 0; l < inputs.roles.at("slots").shape[3]; ++l) {
    const std::vector<double> shares = slot_shares(options, problem, inputs, at, l);
    double total = 0;
    for (const double share : shares) total += share;
    if (total == 0 && !options.boolean("gated")) continue;
    const std::vector<double> key = pooled(shares, inputs.roles.at("key"), at);
    double product = 0;
    for (std::size_t d = 0; d < key.size(); ++d) product += q[d] * key[d];
    logits.push_back(product / std::sqrt(static_cast<double>(problem.head_dim)));
    values.push_back(pooled(shares, value, at));
  }
  if (logits.empty()) return y;
  const double maximum = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (double& logit : logits) total += logit = std::exp(logit - maximum);
  for (std::size_t l = 0; l < logits.size(); ++l) {
    for (std::size_t d = 0; d < y.size(); ++d) y[d] += logits[l] / total * values[l][d];
  }
  return y;
}

std::vector<double> abc_rows(const Options& options, const Problem& problem,
                             const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  std::vector<double> output;
  for (const RowIndex& row : rows) {
    const std::vector<double> y =
        finished(options, inputs, row, abc_row(options, problem, inputs, row));
    output.insert(output.end(), y.begin(), y.end());
  }
  return output;
}

}  // namespace

Reference abc() { return abc_rows; }

}  // namespace attnbench::reference
