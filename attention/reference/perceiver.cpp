// A Perceiver's cross attention and the reading of its latents, by its definition:
//   W_{s,l} = softmax_s(scale latent_l . k_s),  K_l = sum_s W k_s,  V_l = sum_s W v_s,
//   y_t = sum_l softmax_l(scale q_t . K_l) V_l,  s visible, and s <= t in the causal pattern.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

double dot(const double* a, const double* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += a[i] * b[i];
  return sum;
}

/// Latent `l` of a head, keys and values side by side; false where it sees no token.
bool encode(const ReferenceInputs& inputs, const RowIndex& at, std::int64_t l, std::int64_t keys,
            double scale, std::vector<double>& pooled) {
  const Array& k = inputs.roles.at("key");
  const Array& v = inputs.roles.at("value");
  const double* latent = inputs.roles.at("latent_query").row(at.b, at.h, l);
  const std::int64_t width = k.shape[3];
  std::vector<double> scores;
  double top = -std::numeric_limits<double>::infinity();
  for (std::int64_t s = 0; s < keys; ++s) {
    const bool seen = inputs.visible(at.b, s, k.shape[2]);
    scores.push_back(seen ? scale * dot(latent, k.row(at.b, at.h, s), width)
                          : -std::numeric_limits<double>::infinity());
    top = std::max(top, scores.back());
  }
  pooled.assign(static_cast<std::size_t>(width + v.shape[3]), 0.0);
  double total = 0;
  for (std::int64_t s = 0; s < keys; ++s) {
    if (!inputs.visible(at.b, s, k.shape[2])) continue;
    const double weight = std::exp(scores[static_cast<std::size_t>(s)] - top);
    total += weight;
    for (std::size_t i = 0; i < pooled.size(); ++i) {
      const auto column = static_cast<std::int64_t>(i);
      pooled[i] += weight * (column < width ? k.row(at.b, at.h, s)[column]
                                            : v.row(at.b, at.h, s)[column - width]);
    }
  }
  if (total == 0) return false;
  for (double& each : pooled) each /= total;
  return true;
}

std::vector<double> perceiver_rows(const Options& options, const Problem& problem,
                                   const ReferenceInputs& inputs,
                                   const std::vector<RowIndex>& rows) {
  const std::int64_t width = problem.head_dim;
  const std::int64_t latents = inputs.roles.at("latent_query").shape[2];
  double scale = options.number("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(width));
  std::vector<double> output;
  for (const RowIndex& at : rows) {
    const std::int64_t keys = problem.pattern == Pattern::causal ? at.t + 1 : problem.key_length;
    std::vector<std::vector<double>> pooled(static_cast<std::size_t>(latents));
    std::vector<double> wants;
    bool seen = true;
    for (std::int64_t l = 0; l < latents; ++l) {
      std::vector<double>& slot = pooled[static_cast<std::size_t>(l)];
      seen = encode(inputs, at, l, keys, scale, slot) && seen;
      wants.push_back(scale *
                      dot(inputs.roles.at("query").row(at.b, at.h, at.t), slot.data(), width));
    }
    const double top = *std::max_element(wants.begin(), wants.end());
    double total = 0;
    for (double& each : wants) total += each = std::exp(each - top);
    for (std::int64_t d = 0; d < problem.value_dim; ++d) {
      double sum = 0;
      for (std::size_t l = 0; l < pooled.size(); ++l) {
        sum += wants[l] / total * pooled[l][static_cast<std::size_t>(width + d)];
      }
      output.push_back(seen ? sum : 0);
    }
  }
  return output;
}

}  // namespace

Reference perceiver() { return perceiver_rows; }

}  // namespace attnbench::reference
