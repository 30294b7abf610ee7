// Mamba-2 by its definition, a token at a time: Dao and Gu 2024, eq. 1 with the discretisation of
// section 7,
//   S_t = exp(-exp(a_log_h) delta_t) S_{t-1} + delta_t k_t v_t^T,  y_t = S_t^T q_t + skip_h v_t,
//   delta_t = softplus(x_t + bias_h).
// Query and key of head h are those of its group; tokens that are not there give 0.
#include <cmath>

#include "attention/reference/recurrence.hpp"

namespace attnbench::reference {
namespace {

std::vector<double> mamba2_rows(const Options& options, const Problem& problem,
                                const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& query = inputs.roles.at("query");
  const Array& key = inputs.roles.at("key");
  const Array& value = inputs.roles.at("value");
  const std::int64_t width = key.shape[3];
  const std::int64_t columns = value.shape[3];
  const std::int64_t sharing = problem.heads / problem.kv_heads;
  const auto parameter = [&](const char* name, std::int64_t head) {
    return inputs.parameters.at(name).values[static_cast<std::size_t>(head)];
  };
  const auto advance = [&](const RowIndex& at, std::vector<double>& state) {
    const double step =
        softplus(inputs.roles.at("time_step").row(at.b, at.h, at.t)[0] + parameter("bias", at.h));
    const double decay = std::exp(-std::exp(parameter("a_log", at.h)) * step);
    for (std::int64_t d = 0; d < width; ++d) {
      for (std::int64_t j = 0; j < columns; ++j) {
        double& number = state[static_cast<std::size_t>(d * columns + j)];
        number = decay * number +
                 step * key.row(at.b, at.h / sharing, at.t)[d] * value.row(at.b, at.h, at.t)[j];
      }
    }
  };
  const auto read = [&](const RowIndex& at, const std::vector<double>& state) {
    if (!inputs.visible(at.b, at.t, problem.key_length)) {
      return std::vector<double>(static_cast<std::size_t>(columns), 0.0);
    }
    std::vector<double> y = read_rows(state, query.row(at.b, at.h / sharing, at.t), width, columns);
    for (std::int64_t j = 0; j < columns; ++j) {
      y[static_cast<std::size_t>(j)] += parameter("skip", at.h) * value.row(at.b, at.h, at.t)[j];
    }
    return finished(options, inputs, at, y);
  };
  const std::vector<double> start(static_cast<std::size_t>(width * columns), 0.0);
  return rows_of_recurrence(problem, inputs, rows, start, advance, read);
}

}  // namespace

Reference mamba2() { return mamba2_rows; }

}  // namespace attnbench::reference
