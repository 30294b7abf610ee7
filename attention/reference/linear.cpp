// Linear attention by its definition, pair by pair: Katharopoulos et al. 2020, "Transformers are
// RNNs", eq. 4-6 with phi(x) = elu(x) + 1.
//   y_t = sum_s (phi(q_t).phi(k_s)) v_s / (sum_s phi(q_t).phi(k_s) + epsilon), s visible.
#include <cmath>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

double feature(double x) { return x > 0 ? x + 1 : std::exp(x); }

std::vector<double> linear_rows(const Options& options, const Problem& problem,
                                const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& q = inputs.roles.at("query");
  const Array& k = inputs.roles.at("key");
  const Array& v = inputs.roles.at("value");
  const std::int64_t width = v.shape[3];
  std::vector<double> output(rows.size() * static_cast<std::size_t>(width), 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowIndex& at = rows[i];
    double* y = output.data() + i * static_cast<std::size_t>(width);
    const std::int64_t keys = problem.pattern == Pattern::causal ? at.t + 1 : problem.key_length;
    double total = options.number("epsilon");
    for (std::int64_t s = 0; s < keys; ++s) {
      if (!inputs.visible(at.b, s, problem.key_length)) continue;
      double weight = 0;
      for (std::int64_t f = 0; f < q.shape[3]; ++f) {
        weight += feature(q.row(at.b, at.h, at.t)[f]) * feature(k.row(at.b, at.h, s)[f]);
      }
      total += weight;
      for (std::int64_t d = 0; d < width; ++d) y[d] += weight * v.row(at.b, at.h, s)[d];
    }
    for (std::int64_t d = 0; d < width; ++d) y[d] = total > 0 ? y[d] / total : 0;
  }
  return output;
}

}  // namespace

Reference linear() { return linear_rows; }

}  // namespace attnbench::reference
