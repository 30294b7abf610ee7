// Latte by its definition: Dolga et al. 2024, "Latte: Latent Attention for Linear Time
// Transformers".
//   y_t = sum_l softmax_l(q_t) sum_s w_{s,l} v_s,  w_l = softmax of k_l over the visible s;
// with the option vapor each pair of channels of v_s is turned by s - t times its angle.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

/// v_s, or as the query at `t` sees it where values are rotated; `at.h` is a key head, as below.
std::vector<double> value_seen(const Options& options, const Array& v, const RowIndex& at,
                               std::int64_t s) {
  const std::int64_t width = v.shape[3];
  const double* x = v.row(at.b, at.h, s);
  std::vector<double> y(x, x + width);
  if (!options.boolean("vapor")) return y;
  for (std::int64_t pair = 0; pair < width / 2; ++pair) {
    const double angle = static_cast<double>(s - at.t) *
                         std::pow(options.number("rotary_base"),
                                  -static_cast<double>(pair) / static_cast<double>(width / 2));
    const std::int64_t a = 2 * pair, b = 2 * pair + 1;
    y[static_cast<std::size_t>(a)] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
    y[static_cast<std::size_t>(b)] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
  }
  return y;
}

/// Adds p times the softmax of column `l` to the weights of the tokens.
void add_latent(double p, std::int64_t l, double scale, const RowIndex& at, const Problem& problem,
                const ReferenceInputs& inputs, std::vector<double>& weights) {
  const Array& k = inputs.roles.at("key_logits");
  const auto keys = static_cast<std::int64_t>(weights.size());
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
    weights[static_cast<std::size_t>(s)] +=
        p * std::exp(scale * k.row(at.b, at.h, s)[l] - top) / total;
  }
}

std::vector<double> latte_rows(const Options& options, const Problem& problem,
                               const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& q = inputs.roles.at("query_logits");
  const Array& v = inputs.roles.at("value");
  const std::int64_t latents = q.shape[3];
  const double scale = options.number("logit_scale");
  std::vector<double> output;
  for (const RowIndex& at : rows) {
    const double* logits = q.row(at.b, at.h, at.t);
    double top = scale * logits[0];
    for (std::int64_t l = 1; l < latents; ++l) top = std::max(top, scale * logits[l]);
    double total = 0;
    for (std::int64_t l = 0; l < latents; ++l) total += std::exp(scale * logits[l] - top);
    const std::int64_t keys = problem.pattern == Pattern::causal ? at.t + 1 : problem.key_length;
    const RowIndex shared{at.b, at.h / (q.shape[1] / v.shape[1]), at.t};
    std::vector<double> weights(static_cast<std::size_t>(keys), 0.0);
    for (std::int64_t l = 0; l < latents; ++l) {
      add_latent(std::exp(scale * logits[l] - top) / total, l, scale, shared, problem, inputs,
                 weights);
    }
    std::vector<double> y(static_cast<std::size_t>(v.shape[3]), 0.0);
    for (std::int64_t s = 0; s < keys; ++s) {
      if (!inputs.visible(at.b, s, problem.key_length)) continue;
      const std::vector<double> seen = value_seen(options, v, shared, s);
      for (std::size_t d = 0; d < y.size(); ++d)
        y[d] += weights[static_cast<std::size_t>(s)] * seen[d];
    }
    output.insert(output.end(), y.begin(), y.end());
  }
  return output;
}

}  // namespace

Reference latte() { return latte_rows; }

}  // namespace attnbench::reference
