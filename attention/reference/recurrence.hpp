// Definitions that are recurrences: the outputs asked for, from one pass over the tokens of each
// head; and what their option `output` does with a head's output.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {

/// Advances `state` by the token (b, h, t).
using Advance = std::function<void(const RowIndex&, std::vector<double>& state)>;
/// The output at a token from the state that includes it.
using Read = std::function<std::vector<double>(const RowIndex&, const std::vector<double>& state)>;

/// The rows in the order asked for; each head starts from `start`. Tokens that are not visible
/// change no state.
inline std::vector<double> rows_of_recurrence(const Problem& problem, const ReferenceInputs& inputs,
                                              const std::vector<RowIndex>& rows,
                                              const std::vector<double>& start,
                                              const Advance& advance, const Read& read) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::map<std::int64_t, std::vector<double>>> all;
  for (const RowIndex& row : rows) all[{row.b, row.h}][row.t] = {};
  for (auto& [head, wanted] : all) {
    std::vector<double> state = start;
    const std::int64_t last = wanted.rbegin()->first;
    for (std::int64_t t = 0; t <= last; ++t) {
      const RowIndex here{head.first, head.second, t};
      if (inputs.visible(here.b, t, problem.key_length)) advance(here, state);
      const auto found = wanted.find(t);
      if (found != wanted.end()) found->second = read(here, state);
    }
  }
  std::vector<double> output;
  for (const RowIndex& row : rows) {
    const std::vector<double>& y = all[{row.b, row.h}][row.t];
    output.insert(output.end(), y.begin(), y.end());
  }
  return output;
}

/// state [rows, columns]^T x, for x of `rows` numbers.
inline std::vector<double> read_rows(const std::vector<double>& state, const double* x,
                                     std::int64_t rows, std::int64_t columns) {
  std::vector<double> y(static_cast<std::size_t>(columns), 0.0);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      y[static_cast<std::size_t>(j)] += x[i] * state[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return y;
}

/// y, the output at a token; or y / sqrt(mean(y^2) + 1e-5); or that times g sigmoid(g), g of the
/// role "output_gate".
inline std::vector<double> finished(const Options& options, const ReferenceInputs& inputs,
                                    const RowIndex& at, std::vector<double> y) {
  if (options.text("output") == "plain") return y;
  double square = 0;
  for (const double each : y) square += each * each;
  const double norm = std::sqrt(square / static_cast<double>(y.size()) + 1e-5);
  for (double& each : y) each /= norm;
  if (options.text("output") == "normalised") return y;
  const double* gate = inputs.roles.at("output_gate").row(at.b, at.h, at.t);
  for (std::size_t j = 0; j < y.size(); ++j) y[j] *= gate[j] / (1 + std::exp(-gate[j]));
  return y;
}

/// x / sqrt(|x|^2 + epsilon).
inline std::vector<double> unit(const double* x, std::int64_t width, double epsilon) {
  double square = epsilon;
  for (std::int64_t d = 0; d < width; ++d) square += x[d] * x[d];
  std::vector<double> y(x, x + width);
  for (double& each : y) each /= std::sqrt(square);
  return y;
}

/// log(1 + e^x), for any x.
inline double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

}  // namespace attnbench::reference
