// Softmax attention by its definition (Vaswani et al. 2017, equation 1), one row at a time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

std::vector<double> softmax_rows(const Options& options, const Problem& problem,
                                 const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& q = inputs.roles.at("q");
  const Array& k = inputs.roles.at("k");
  const Array& v = inputs.roles.at("v");
  const std::int64_t keys = k.shape[2];
  const std::int64_t group = q.shape[1] / k.shape[1];
  const std::int64_t dim = q.shape[3];
  const std::int64_t value_dim = v.shape[3];
  double scale = options.number("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(dim));

  std::vector<double> out;
  for (const RowIndex& row : rows) {
    const std::int64_t last =
        problem.pattern == Pattern::causal ? row.t + keys - q.shape[2] : keys - 1;
    std::vector<double> logits(static_cast<std::size_t>(keys),
                               -std::numeric_limits<double>::infinity());
    double greatest = -std::numeric_limits<double>::infinity();
    for (std::int64_t s = 0; s <= std::min(last, keys - 1); ++s) {
      if (!inputs.visible(row.b, s, keys)) continue;
      double dot = 0;
      for (std::int64_t d = 0; d < dim; ++d) {
        dot += q.row(row.b, row.h, row.t)[d] * k.row(row.b, row.h / group, s)[d];
      }
      logits[static_cast<std::size_t>(s)] = scale * dot;
      greatest = std::max(greatest, scale * dot);
    }
    std::vector<double> sum(static_cast<std::size_t>(value_dim), 0.0);
    double weights = 0;
    for (std::int64_t s = 0; s < keys; ++s) {
      if (std::isinf(logits[static_cast<std::size_t>(s)])) continue;
      const double weight = std::exp(logits[static_cast<std::size_t>(s)] - greatest);
      weights += weight;
      for (std::int64_t d = 0; d < value_dim; ++d) {
        sum[static_cast<std::size_t>(d)] += weight * v.row(row.b, row.h / group, s)[d];
      }
    }
    for (const double value : sum) out.push_back(weights == 0 ? 0.0 : value / weights);
  }
  return out;
}

}  // namespace

Reference softmax() { return softmax_rows; }

}  // namespace attnbench::reference
