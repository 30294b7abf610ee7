// Retention by its definition, pair by pair: Sun et al. 2023, "Retentive Network", eq. 5, with the
// rotation of its eq. 3 written out,
//   y_t = 1/sqrt(D) sum_{s<=t} gamma^(t-s) sum_i Re(q_ti conj(k_si) e^(j (t-s) theta_i)) v_s,
// where i counts pairs of channels and theta_i = 10000^(-2i/D); a last channel without a partner
// is not rotated. Lightning Attention (Qin et al. 2024, section 3.1) rotates nothing.
#include <cmath>

#include "attention/reference/recurrence.hpp"

namespace attnbench::reference {
namespace {

double retention_gamma(const Options& options, const Problem& problem, std::int64_t head) {
  if (options.number("gamma") > 0) return options.number("gamma");
  const auto h = static_cast<double>(head);
  if (options.text("decay") == "xpos") return 1 - std::pow(2.0, -5 - h);
  return std::exp(-8 * h / static_cast<double>(problem.heads));
}

/// q . k after a rotation by `distance` tokens.
double turned_product(const double* q, const double* k, std::int64_t width, double distance) {
  double sum = 0;
  const std::int64_t even = width - width % 2;
  for (std::int64_t i = 0; i < even; i += 2) {
    const double theta = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(even));
    const double cosine = std::cos(distance * theta);
    const double sine = std::sin(distance * theta);
    sum += (q[i] * k[i] + q[i + 1] * k[i + 1]) * cosine;
    sum += (q[i + 1] * k[i] - q[i] * k[i + 1]) * -sine;
  }
  if (even < width) sum += q[even] * k[even];
  return sum;
}

double plain_product(const double* q, const double* k, std::int64_t width) {
  double sum = 0;
  for (std::int64_t d = 0; d < width; ++d) sum += q[d] * k[d];
  return sum;
}

std::vector<double> retention_rows(const Options& options, const Problem& problem,
                                   const ReferenceInputs& inputs,
                                   const std::vector<RowIndex>& rows) {
  const Array& query = inputs.roles.at("query");
  const Array& key = inputs.roles.at("key");
  const Array& value = inputs.roles.at("value");
  const bool turns = options.text("decay") == "xpos";
  const double scale = 1 / std::sqrt(static_cast<double>(problem.head_dim));
  std::vector<double> output;
  for (const RowIndex& row : rows) {
    const double gamma = retention_gamma(options, problem, row.h);
    std::vector<double> y(static_cast<std::size_t>(value.shape[3]), 0.0);
    for (std::int64_t s = 0; s <= row.t; ++s) {
      if (!inputs.visible(row.b, s, problem.key_length)) continue;
      const double* q = query.row(row.b, row.h, row.t);
      const double* k = key.row(row.b, row.h, s);
      const auto distance = static_cast<double>(row.t - s);
      const double product =
          turns ? turned_product(q, k, key.shape[3], distance) : plain_product(q, k, key.shape[3]);
      const double weight = scale * std::pow(gamma, distance) * product;
      for (std::size_t d = 0; d < y.size(); ++d) y[d] += weight * value.row(row.b, row.h, s)[d];
    }
    y = finished(options, inputs, row, y);
    output.insert(output.end(), y.begin(), y.end());
  }
  return output;
}

}  // namespace

Reference retention() { return retention_rows; }

}  // namespace attnbench::reference
