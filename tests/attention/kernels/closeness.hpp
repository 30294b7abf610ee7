// How close a kernel must come to its definition in double, and the message where it does not.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "attention/kernels/rows.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::kernels::test {

/// Greatest relative distance (root of mean squares) of a result and of a gradient, by how numbers
/// are stored. In float and double: a few dozen roundings of 6e-8 or 1e-16 along sums of some
/// hundred terms, and the exponential's 2.5e-7; a gradient goes through two such sums. In bfloat16
/// what is stored is rounded by up to 4e-3, 1.7e-3 in the mean, in float16 by an eighth of that; a
/// gradient is made of rounded results.
template <class T>
struct Bars;
template <>
struct Bars<float> {
  static constexpr double forward = 3e-6, backward = 1e-5;
};
template <>
struct Bars<double> {
  static constexpr double forward = 1e-13, backward = 1e-12;
};
template <>
struct Bars<BFloat16> {
  static constexpr double forward = 5e-3, backward = 1e-2;
};
template <>
struct Bars<Half> {
  static constexpr double forward = 1e-3, backward = 2e-3;
};

template <class T>
double norm(const std::vector<T>& x) {
  double sum = 0;
  for (const T& each : x) sum += double{widen(each)} * double{widen(each)};
  return std::sqrt(sum);
}

template <class T>
double distance(const std::vector<T>& found, const std::vector<double>& exact) {
  std::vector<double> difference = exact;
  for (std::size_t i = 0; i < exact.size(); ++i) difference[i] -= double{widen(found[i])};
  return norm(difference);
}

template <class T>
double relative_rms(const std::vector<T>& found, const std::vector<double>& exact) {
  return distance(found, exact) / std::max(norm(exact), 1e-150);
}

/// The distance of a gradient, relative to its size. One that all but vanishes (a softmax over one
/// latent, an average of one token) is rounding of numbers as large as `large`, another gradient.
template <class T>
double gradient_error(const std::vector<T>& found, const std::vector<double>& exact,
                      const std::vector<double>& large) {
  if (norm(exact) > 1e-4 * norm(large)) return relative_rms(found, exact);
  return distance(found, exact) / std::max(norm(large), 1e-150);
}

inline double inner(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// The gradient along a random direction of `x` against the grad of `loss`, by central differences
/// of fourth order.
template <class Loss>
void check_grad(std::mt19937& engine, const Loss& loss, std::vector<double>& x,
                const std::vector<double>& gradient) {
  const std::vector<double> saved = x;
  std::vector<double> direction(x.size());
  std::normal_distribution<double> normal;
  for (double& each : direction) each = normal(engine);
  const auto at = [&](double step) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = saved[i] + step * direction[i];
    return loss();
  };
  constexpr double h = 1e-4;
  const double grad = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
  x = saved;
  CHECK(inner(gradient, direction) == Approx(grad).epsilon(1e-7).margin(1e-7));
}

}  // namespace attnbench::kernels::test
