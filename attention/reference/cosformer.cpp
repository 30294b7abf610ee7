// cosFormer by its definition, pair by pair: Qin et al. 2022, eq. 10,
//   w_ts = relu(q_t).relu(k_s) cos(pi/2 (t - s) / M),
//   y_t = sum_s w_ts v_s / (sum_s w_ts + epsilon), s visible.
#include <algorithm>
#include <cmath>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

std::vector<double> cosformer_rows(const Options& options, const Problem& problem,
                                   const ReferenceInputs& inputs,
                                   const std::vector<RowIndex>& rows) {
  const Array& query = inputs.roles.at("query");
  const Array& key = inputs.roles.at("key");
  const Array& value = inputs.roles.at("value");
  const double reach = static_cast<double>(options.integer("maximum_length"));
  std::vector<double> output;
  for (const RowIndex& row : rows) {
    std::vector<double> y(static_cast<std::size_t>(value.shape[3]), 0.0);
    double total = options.number("epsilon");
    const std::int64_t keys = problem.pattern == Pattern::causal ? row.t + 1 : problem.key_length;
    for (std::int64_t s = 0; s < keys; ++s) {
      if (!inputs.visible(row.b, s, problem.key_length)) continue;
      double weight = 0;
      for (std::int64_t d = 0; d < key.shape[3]; ++d) {
        weight += std::max(query.row(row.b, row.h, row.t)[d], 0.0) *
                  std::max(key.row(row.b, row.h, s)[d], 0.0);
      }
      weight *= std::cos(std::acos(-1.0) / 2 * static_cast<double>(row.t - s) / reach);
      total += weight;
      for (std::size_t d = 0; d < y.size(); ++d) y[d] += weight * value.row(row.b, row.h, s)[d];
    }
    for (double& each : y) each /= total;
    output.insert(output.end(), y.begin(), y.end());
  }
  return output;
}

}  // namespace

Reference cosformer() { return cosformer_rows; }

}  // namespace attnbench::reference
