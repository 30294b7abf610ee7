// The delta rule by its definition, a token at a time: Yang et al. 2024 (DeltaNet), eq. 2, with the
// decays of Gated DeltaNet (eq. 10) and of Kimi Linear (eq. 1),
//   S' = diag(alpha_t) S_{t-1},  S_t = S' + beta_t k_t (v_t - S'^T k_t)^T,  y_t = S_t^T q_t /
//   sqrt(D),
// q and k divided by sqrt(|.|^2 + epsilon), beta_t = beta_limit sigmoid(x), and
// alpha_t = exp(-exp(a_log) softplus(x + bias)).
#include <cmath>

#include "attention/reference/recurrence.hpp"

namespace attnbench::reference {
namespace {

/// The factor on row `d` of the state at a token.
double delta_decay(const Options& options, const ReferenceInputs& inputs, const RowIndex& at,
                   std::int64_t d) {
  if (options.text("gate") == "none") return 1;
  const Array& gate = inputs.roles.at("gate");
  const std::int64_t gates = gate.shape[3];
  const std::int64_t i = gates == 1 ? 0 : d;
  const double rate =
      std::exp(inputs.parameters.at("a_log").values[static_cast<std::size_t>(at.h)]);
  const double bias =
      inputs.parameters.at("bias").values[static_cast<std::size_t>(at.h * gates + i)];
  return std::exp(-rate * softplus(gate.row(at.b, at.h, at.t)[i] + bias));
}

std::vector<double> delta_rows(const Options& options, const Problem& problem,
                               const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& key = inputs.roles.at("key");
  const Array& value = inputs.roles.at("value");
  const std::int64_t width = key.shape[3];
  const std::int64_t columns = value.shape[3];
  const double epsilon = options.number("epsilon");
  const auto advance = [&](const RowIndex& at, std::vector<double>& state) {
    const std::vector<double> k = unit(key.row(at.b, at.h, at.t), width, epsilon);
    const double logit = inputs.roles.at("beta").row(at.b, at.h, at.t)[0];
    const double beta = static_cast<double>(options.integer("beta_limit")) / (1 + std::exp(-logit));
    for (std::int64_t d = 0; d < width; ++d) {
      const double decay = delta_decay(options, inputs, at, d);
      for (std::int64_t j = 0; j < columns; ++j) {
        state[static_cast<std::size_t>(d * columns + j)] *= decay;
      }
    }
    const std::vector<double> held = read_rows(state, k.data(), width, columns);
    for (std::int64_t d = 0; d < width; ++d) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const double change = value.row(at.b, at.h, at.t)[j] - held[static_cast<std::size_t>(j)];
        state[static_cast<std::size_t>(d * columns + j)] +=
            beta * k[static_cast<std::size_t>(d)] * change;
      }
    }
  };
  const auto read = [&](const RowIndex& at, const std::vector<double>& state) {
    const std::vector<double> q =
        unit(inputs.roles.at("query").row(at.b, at.h, at.t), width, epsilon);
    std::vector<double> y = read_rows(state, q.data(), width, columns);
    for (double& each : y) each /= std::sqrt(static_cast<double>(problem.head_dim));
    return finished(options, inputs, at, y);
  };
  const std::vector<double> start(static_cast<std::size_t>(width * columns), 0.0);
  return rows_of_recurrence(problem, inputs, rows, start, advance, read);
}

}  // namespace

Reference delta() { return delta_rows; }

}  // namespace attnbench::reference
