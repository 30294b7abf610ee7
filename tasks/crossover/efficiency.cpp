#include "tasks/crossover/efficiency.hpp"

#include <cmath>

#include "attention/torch/torch.hpp"

namespace attnbench::tasks::crossover {
namespace {

struct Fit {
  std::vector<double> coefficients;  ///< of x^0, x^1, …
  double r2 = 0;
};

/// Least squares of a polynomial.
Fit fit(const std::vector<double>& x, const std::vector<double>& y, std::int64_t degree) {
  const auto rows = static_cast<std::int64_t>(x.size());
  at::Tensor powers = at::ones({rows, degree + 1}, at::kDouble);
  at::Tensor values = at::empty({rows, 1}, at::kDouble);
  double mean = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto at_i = static_cast<std::size_t>(i);
    for (std::int64_t power = 1; power <= degree; ++power) {
      powers[i][power] = std::pow(x[at_i], static_cast<double>(power));
    }
    values[i][0] = y[at_i];
    mean += y[at_i] / static_cast<double>(rows);
  }
  const at::Tensor solution = std::get<0>(at::linalg_lstsq(powers, values));
  Fit result;
  for (std::int64_t power = 0; power <= degree; ++power) {
    result.coefficients.push_back(solution[power][0].item<double>());
  }
  double residual = 0;
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double fitted = 0;
    for (std::size_t power = result.coefficients.size(); power-- > 0;) {
      fitted = fitted * x[i] + result.coefficients[power];
    }
    residual += (y[i] - fitted) * (y[i] - fitted);
    total += (y[i] - mean) * (y[i] - mean);
  }
  result.r2 = total > 0 ? 1 - residual / total : 1;
  return result;
}

}  // namespace

std::optional<Efficiency> efficiency_length(const std::vector<double>& lengths,
                                            const std::vector<double>& exact,
                                            const std::vector<double>& mechanism) {
  constexpr std::size_t least_lengths = 4;
  constexpr double least_share = 0.01;
  if (lengths.size() < least_lengths) return std::nullopt;
  // Lengths as shares of the longest: their squares would spread the columns over twelve decades.
  const double unit = lengths.back();
  std::vector<double> x;
  for (const double length : lengths) x.push_back(length / unit);
  const Fit parabola = fit(x, exact, 2);
  const Fit line = fit({x.begin() + 1, x.end()}, {mechanism.begin() + 1, mechanism.end()}, 1);
  const double a = parabola.coefficients[2];
  const double b = parabola.coefficients[1] - line.coefficients[1];
  const double c = parabola.coefficients[0] - line.coefficients[0];
  const double discriminant = b * b - 4 * a * c;
  if (!(a > least_share * exact.back()) || !(discriminant >= 0)) return std::nullopt;
  const double root = (-b + std::sqrt(discriminant)) / (2 * a);
  if (!(root > 0)) return std::nullopt;
  return Efficiency{root * unit, parabola.r2, line.r2};
}

}  // namespace attnbench::tasks::crossover
