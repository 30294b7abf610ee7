// HGRN2 by its definition, a token at a time: Qin et al. 2024, section 3,
//   S_t = diag(f_t) S_{t-1} + (1 - f_t) v_t^T,   y_t = S_t^T silu(q_t) / sqrt(D).
#include <cmath>

#include "attention/reference/recurrence.hpp"

namespace attnbench::reference {
namespace {

std::vector<double> hgrn2_rows(const Options& options, const Problem& problem,
                               const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& gate = inputs.roles.at("gate");
  const Array& value = inputs.roles.at("value");
  const std::int64_t width = gate.shape[3];
  const std::int64_t columns = value.shape[3];
  const double bound = options.number("lower_bound");
  const auto advance = [&](const RowIndex& at, std::vector<double>& state) {
    for (std::int64_t d = 0; d < width; ++d) {
      const double logit = gate.row(at.b, at.h, at.t)[d];
      const double forget = bound + (1 - bound) / (1 + std::exp(-logit));
      const double written = (1 - bound) / (1 + std::exp(logit));
      for (std::int64_t j = 0; j < columns; ++j) {
        double& number = state[static_cast<std::size_t>(d * columns + j)];
        number = forget * number + written * value.row(at.b, at.h, at.t)[j];
      }
    }
  };
  const auto read = [&](const RowIndex& at, const std::vector<double>& state) {
    const double* const from = inputs.roles.at("query").row(at.b, at.h, at.t);
    std::vector<double> query(from, from + width);
    for (double& each : query) each /= 1 + std::exp(-each);
    std::vector<double> y = read_rows(state, query.data(), width, columns);
    for (double& each : y) each /= std::sqrt(static_cast<double>(problem.head_dim));
    return finished(options, inputs, at, y);
  };
  const std::vector<double> start(static_cast<std::size_t>(width * columns), 0.0);
  return rows_of_recurrence(problem, inputs, rows, start, advance, read);
}

}  // namespace

Reference hgrn2() { return hgrn2_rows; }

}  // namespace attnbench::reference
