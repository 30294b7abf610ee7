// Gated linear attention by its definition, a token at a time: Yang et al. 2024, eq. 3 and section
// 4.4,
//   S_t = diag(sigmoid(x_t)^(1/tau)) S_{t-1} + k_t v_t^T,   y_t = S_t^T q_t / sqrt(D).
#include <cmath>

#include "attention/reference/recurrence.hpp"

namespace attnbench::reference {
namespace {

std::vector<double> gla_rows(const Options& options, const Problem& problem,
                             const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& key = inputs.roles.at("key");
  const Array& value = inputs.roles.at("value");
  const std::int64_t width = key.shape[3];
  const std::int64_t columns = value.shape[3];
  const auto advance = [&](const RowIndex& at, std::vector<double>& state) {
    for (std::int64_t d = 0; d < width; ++d) {
      const double logit = inputs.roles.at("gate").row(at.b, at.h, at.t)[d];
      const double decay = std::exp(-softplus(-logit) / options.number("gate_temperature"));
      for (std::int64_t j = 0; j < columns; ++j) {
        double& number = state[static_cast<std::size_t>(d * columns + j)];
        number = decay * number + key.row(at.b, at.h, at.t)[d] * value.row(at.b, at.h, at.t)[j];
      }
    }
  };
  const auto read = [&](const RowIndex& at, const std::vector<double>& state) {
    std::vector<double> y =
        read_rows(state, inputs.roles.at("query").row(at.b, at.h, at.t), width, columns);
    for (double& each : y) each /= std::sqrt(static_cast<double>(problem.head_dim));
    return finished(options, inputs, at, y);
  };
  const std::vector<double> start(static_cast<std::size_t>(width * columns), 0.0);
  return rows_of_recurrence(problem, inputs, rows, start, advance, read);
}

}  // namespace

Reference gla() { return gla_rows; }

}  // namespace attnbench::reference
