// Latte by its definition: Dolga et al. 2024, "Latte: Latent Attention for Linear Time
// Transformers".
//   y_t = sum_l softmax_l(q_t) sum_s w_{s,l} v_s,  w_l = softmax of k_l over the visible s.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

/// Adds p * (the average of the values, weighted by the softmax of column `l`) to `y`.
void add_latent(double p, std::int64_t l, double scale, std::int64_t keys, const RowIndex& at,
                const Problem& problem, const ReferenceInputs& inputs, double* y) {
  const Array& k = inputs.roles.at("key_logits");
  const Array& v = inputs.roles.at("value");
  const auto visible = [&](std::int64_t s) { return inputs.visible(at.b, s, problem.key_length); };
  double top = -std::numeric_limits<double>::infinity();
  for (std::int64_t s = 0; s < keys; ++s) {
    if (visible(s)) top = std::max(top, scale * k.row(at.b, at.h, s)[l]);
  }
  if (std::isinf(top)) return;
  double total = 0;
  for (std::int64_t s = 0; s < keys; ++s) {
    if (visible(s)) total += std::exp(scale * k.row(at.b, at.h, s)[l] - top);
  }
  for (std::int64_t s = 0; s < keys; ++s) {
    if (!visible(s)) continue;
    const double weight = p * std::exp(scale * k.row(at.b, at.h, s)[l] - top) / total;
    for (std::int64_t d = 0; d < v.shape[3]; ++d) y[d] += weight * v.row(at.b, at.h, s)[d];
  }
}

std::vector<double> latte_rows(const Options& options, const Problem& problem,
                               const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& q = inputs.roles.at("query_logits");
  const std::int64_t latents = q.shape[3];
  const std::int64_t width = inputs.roles.at("value").shape[3];
  const double scale = options.number("logit_scale");
  std::vector<double> output(rows.size() * static_cast<std::size_t>(width), 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowIndex& at = rows[i];
    const double* logits = q.row(at.b, at.h, at.t);
    double top = scale * logits[0];
    for (std::int64_t l = 1; l < latents; ++l) top = std::max(top, scale * logits[l]);
    double total = 0;
    for (std::int64_t l = 0; l < latents; ++l) total += std::exp(scale * logits[l] - top);
    const std::int64_t keys = problem.pattern == Pattern::causal ? at.t + 1 : problem.key_length;
    for (std::int64_t l = 0; l < latents; ++l) {
      add_latent(std::exp(scale * logits[l] - top) / total, l, scale, keys, at, problem, inputs,
                 output.data() + i * static_cast<std::size_t>(width));
    }
  }
  return output;
}

}  // namespace

Reference latte() { return latte_rows; }

}  // namespace attnbench::reference
