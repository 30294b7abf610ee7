#include "attention/reference/band.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnbench::reference {
namespace {

double dot(const double* a, const double* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t d = 0; d < width; ++d) sum += a[d] * b[d];
  return sum;
}

}  // namespace

std::vector<double> band_rows(const ReferenceInputs& inputs, const std::vector<RowIndex>& rows,
                              double scale, std::int64_t left, std::int64_t right,
                              std::int64_t offset) {
  const Array& q = inputs.roles.at("query");
  const Array& k = inputs.roles.at("key");
  const Array& v = inputs.roles.at("value");
  const std::int64_t keys = k.shape[2];
  const std::int64_t group = q.shape[1] / k.shape[1];
  const auto value_dim = static_cast<std::size_t>(v.shape[3]);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(q.shape[3]));

  std::vector<double> out;
  for (const RowIndex& row : rows) {
    std::vector<std::int64_t> seen;
    std::vector<double> logits;
    double greatest = -std::numeric_limits<double>::infinity();
    const std::int64_t first = std::max<std::int64_t>(0, row.t + offset - left);
    for (std::int64_t s = first; s <= std::min(keys - 1, row.t + offset + right); ++s) {
      if (!inputs.visible(row.b, s, keys)) continue;
      seen.push_back(s);
      logits.push_back(scale *
                       dot(q.row(row.b, row.h, row.t), k.row(row.b, row.h / group, s), q.shape[3]));
      greatest = std::max(greatest, logits.back());
    }
    std::vector<double> sum(value_dim, 0.0);
    double weights = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const double weight = std::exp(logits[i] - greatest);
      const double* value = v.row(row.b, row.h / group, seen[i]);
      weights += weight;
      for (std::size_t d = 0; d < value_dim; ++d) sum[d] += weight * value[d];
    }
    for (const double value : sum) out.push_back(weights == 0 ? 0.0 : value / weights);
  }
  return out;
}

}  // namespace attnbench::reference
