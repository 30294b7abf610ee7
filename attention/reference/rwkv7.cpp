// RWKV-7 by its definition, a token at a time: Peng et al. 2025, section 4.1, with the state
// transposed, so that its rows are channels of the key,
//   S_t = (diag(w_t) - (a_t * r_t) r_t^T) S_{t-1} + k_t v_t^T,   y_t = S_t^T q_t,
//   w_t = exp(-exp(-1/2) / (1 + exp(-(d_t + b)))),   a_t = 1 / (1 + exp(-(x_t + c))),
//   r_t = xi * u_t / sqrt(|xi * u_t|^2 + epsilon),   k_t = u_t * (1 + alpha * (a_t - 1)).
#include <cmath>

#include "attention/reference/recurrence.hpp"

namespace attnbench::reference {
namespace {

std::vector<double> rwkv7_rows(const Options& options, const Problem& problem,
                               const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& key = inputs.roles.at("key");
  const Array& value = inputs.roles.at("value");
  const std::int64_t width = key.shape[3];
  const std::int64_t columns = value.shape[3];
  const auto advance = [&](const RowIndex& at, std::vector<double>& state) {
    const auto role = [&](const char* name) { return inputs.roles.at(name).row(at.b, at.h, at.t); };
    const auto parameter = [&](const char* name) {
      return inputs.parameters.at(name).values.data() + at.h * width;
    };
    const double *u = role("key"), *decays = role("decay"), *rates = role("learning_rate");
    const double *xi = parameter("removal"), *alpha = parameter("replacement");
    const double *decay_bias = parameter("decay_bias"), *rate_bias = parameter("rate_bias");
    std::vector<double> removal;
    for (std::int64_t d = 0; d < width; ++d) removal.push_back(xi[d] * u[d]);
    removal = unit(removal.data(), width, options.number("epsilon"));
    const std::vector<double> held = read_rows(state, removal.data(), width, columns);
    for (std::int64_t d = 0; d < width; ++d) {
      const double decay = std::exp(-std::exp(-0.5) / (1 + std::exp(-(decays[d] + decay_bias[d]))));
      const double rate = 1 / (1 + std::exp(-(rates[d] + rate_bias[d])));
      const double written = u[d] * (1 + alpha[d] * (rate - 1));
      for (std::int64_t j = 0; j < columns; ++j) {
        double& number = state[static_cast<std::size_t>(d * columns + j)];
        number = decay * number -
                 rate * removal[static_cast<std::size_t>(d)] * held[static_cast<std::size_t>(j)] +
                 written * value.row(at.b, at.h, at.t)[j];
      }
    }
  };
  const auto read = [&](const RowIndex& at, const std::vector<double>& state) {
    const double* const query = inputs.roles.at("query").row(at.b, at.h, at.t);
    return finished(options, inputs, at, read_rows(state, query, width, columns));
  };
  const std::vector<double> start(static_cast<std::size_t>(width * columns), 0.0);
  return rows_of_recurrence(problem, inputs, rows, start, advance, read);
}

}  // namespace

Reference rwkv7() { return rwkv7_rows; }

}  // namespace attnbench::reference
