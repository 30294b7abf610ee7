// Forgetting attention by its definition, query by query: Lin et al. 2025,
//   y_t = softmax over s <= t of (q_t.k_s / sqrt(D) + sum_{s<u<=t} log f_u) v_s,
//   f_u = sigmoid(x_u + b_h); and with output=normalised y / sqrt(mean(y^2) + 1e-6), with
//   output=gated that times sigmoid(g_t). Tokens that are not there forget nothing.
#include <algorithm>
#include <cmath>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

/// log sigmoid(x), for any x.
double log_sigmoid(double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x))); }

/// The keys that a query sees, from its own back, and their scores.
struct FoxScores {
  std::vector<std::int64_t> keys;
  std::vector<double> scores;
};

FoxScores fox_scores(const Options& options, const Problem& problem, const ReferenceInputs& inputs,
                     const RowIndex& at) {
  const Array& query = inputs.roles.at("query");
  const Array& key = inputs.roles.at("key");
  const std::int64_t sharing = problem.heads / problem.kv_heads;
  const std::int64_t width = query.shape[3];
  const double said = options.number("scale");
  const double scale = said != 0 ? said : 1 / std::sqrt(static_cast<double>(width));
  const double bias = inputs.parameters.at("forget_bias").values[static_cast<std::size_t>(at.h)];
  FoxScores seen;
  double decay = 0;  // of the tokens after s
  for (std::int64_t s = at.t; s >= 0; --s) {
    if (!inputs.visible(at.b, s, problem.key_length)) continue;
    double product = 0;
    for (std::int64_t d = 0; d < width; ++d) {
      product += query.row(at.b, at.h, at.t)[d] * key.row(at.b, at.h / sharing, s)[d];
    }
    seen.keys.push_back(s);
    seen.scores.push_back(scale * product + decay);
    decay += log_sigmoid(inputs.roles.at("forget_gate").row(at.b, at.h, s)[0] + bias);
  }
  return seen;
}

std::vector<double> fox_rows(const Options& options, const Problem& problem,
                             const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& value = inputs.roles.at("value");
  const std::int64_t sharing = problem.heads / problem.kv_heads;
  const auto width = static_cast<std::size_t>(value.shape[3]);
  std::vector<double> output;
  for (const RowIndex& at : rows) {
    const FoxScores seen = fox_scores(options, problem, inputs, at);
    std::vector<double> y(width, 0.0);
    if (!seen.keys.empty()) {
      const double greatest = *std::max_element(seen.scores.begin(), seen.scores.end());
      double total = 0;
      for (std::size_t i = 0; i < seen.keys.size(); ++i) {
        const double weight = std::exp(seen.scores[i] - greatest);
        const double* row = value.row(at.b, at.h / sharing, seen.keys[i]);
        total += weight;
        for (std::size_t d = 0; d < width; ++d) y[d] += weight * row[d];
      }
      for (double& each : y) each /= total;
    }
    if (options.text("output") != "plain") {
      double square = 0;
      for (const double each : y) square += each * each;
      const double norm = std::sqrt(square / static_cast<double>(width) + 1e-6);
      for (double& each : y) each /= norm;
    }
    if (options.text("output") == "gated") {
      const double* gate = inputs.roles.at("output_gate").row(at.b, at.h, at.t);
      for (std::size_t d = 0; d < width; ++d) y[d] *= std::exp(log_sigmoid(gate[d]));
    }
    output.insert(output.end(), y.begin(), y.end());
  }
  return output;
}

}  // namespace

Reference fox() { return fox_rows; }

}  // namespace attnbench::reference
