// A problem of a recurrent family with its memory: query and key [B, H, T, L], values [B, H, T, D].
// A family's traits say how its kernel is called and what its numbers are by definition, in double.
#pragma once

#include <algorithm>
#include <functional>
#include <random>

#include "tests/attention/kernels/arrays.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::kernels::test {

struct Shape {
  std::int64_t length, latents, value_dim;
  std::int64_t batch = 2, heads = 2;
  double spread = 1;
  bool masked = false;
};

template <template <class> class Family, class T>
struct Recurrent {
  using F = Family<T>;
  using R = Compute<T>;
  Shape shape;
  typename F::Sizes sizes;
  std::vector<T> query, key, values, d_out, out, d_query, d_key, d_values;
  std::vector<std::uint8_t> mask;

  Recurrent(const Shape& s, const typename F::Sizes& like) : shape(s), sizes(like) {
    F::resize(sizes, s);
    std::mt19937 engine(11);
    std::normal_distribution<double> normal;
    const auto fill = [&](std::vector<T>& x, std::int64_t width, double spread) {
      x.resize(static_cast<std::size_t>(s.batch * s.heads * s.length * width));
      for (auto& value : x) value = stored<T>(spread * normal(engine));
    };
    fill(query, s.latents, s.spread);
    fill(key, s.latents, s.spread);
    fill(values, s.value_dim, 1);
    fill(d_out, s.value_dim, 1);
    out = d_out;
    d_query = query;
    d_key = key;
    d_values = values;
    for (std::int64_t i = 0; s.masked && i < s.batch * s.length; ++i) {
      mask.push_back(engine() % 4 != 0);
    }
  }
  /// The same numbers, as they are stored, in double.
  Recurrent<Family, double> in_double() const {
    Recurrent<Family, double> copy(shape, sizes);
    const auto widened = [](const std::vector<T>& x) {
      std::vector<double> y;
      for (const T& value : x) y.push_back(widen(value));
      return y;
    };
    copy.query = widened(query);
    copy.key = widened(key);
    copy.values = widened(values);
    copy.d_out = widened(d_out);
    copy.mask = mask;
    return copy;
  }

  template <class U>
  Rows<U> rows(std::vector<T>& x, std::int64_t width, std::int64_t begin = 0) const {
    auto rows = rows_of<U>(x, shape.heads, shape.length, width);
    rows.data += begin * width;
    return rows;
  }
  /// Tokens [begin, end).
  typename F::Arguments arguments(std::int64_t begin = 0) {
    typename F::Arguments a;
    F::set_inputs(a, rows<const T>(query, shape.latents, begin),
                  rows<const T>(key, shape.latents, begin),
                  rows<const T>(values, shape.value_dim, begin));
    a.out = rows<T>(out, shape.value_dim, begin);
    if (!mask.empty()) a.key_mask = mask.data() + begin;
    a.mask_stride = shape.length;
    return a;
  }
  void forward(int threads) { run(sizes, arguments(), threads); }
  static void run(const typename F::Sizes& sizes, const typename F::Arguments& arguments,
                  int threads) {
    StdTeam team(threads);
    Block block(F::forward_bytes(sizes, threads));
    F::forward(sizes, arguments, team, block.data(), F::forward_bytes(sizes, threads));
    REQUIRE(block.intact());
  }
  void backward(int threads) {
    StdTeam team(threads);
    Block block(F::backward_bytes(sizes, threads));
    F::backward(sizes, arguments(), rows<const T>(d_out, shape.value_dim),
                rows<T>(d_query, shape.latents), rows<T>(d_key, shape.latents),
                rows<T>(d_values, shape.value_dim), team, block.data(),
                F::backward_bytes(sizes, threads));
    REQUIRE(block.intact());
  }
  bool real(std::int64_t b, std::int64_t t) const {
    return mask.empty() || mask[static_cast<std::size_t>(b * shape.length + t)] != 0;
  }
  /// y_t = sum_s A_{t,s} v_s, with the family's A.
  std::vector<double> define() const {
    std::vector<double> y(out.size(), 0.0);
    for (std::int64_t head = 0; head < shape.batch * shape.heads; ++head) {
      const T* q = query.data() + head * shape.length * shape.latents;
      const T* k = key.data() + head * shape.length * shape.latents;
      const std::function<bool(std::int64_t)> seen = [&](std::int64_t s) {
        return real(head / shape.heads, s);
      };
      for (std::int64_t t = 0; t < shape.length; ++t) {
        const std::vector<double> weights = F::weights(sizes, q, k, t, seen);
        double* to = y.data() + (head * shape.length + t) * shape.value_dim;
        for (std::int64_t s = 0; s <= t; ++s) {
          const T* v = values.data() + (head * shape.length + s) * shape.value_dim;
          for (std::int64_t d = 0; d < shape.value_dim; ++d) {
            to[d] += weights[static_cast<std::size_t>(s)] * widen(v[d]);
          }
        }
      }
    }
    return y;
  }
};

template <class T>
struct RecurrentBars;
template <>
struct RecurrentBars<float> {
  static constexpr double forward = 3e-6, backward = 2e-5;
};
template <>
struct RecurrentBars<double> {
  static constexpr double forward = 1e-13, backward = 1e-12;
};
template <>
struct RecurrentBars<BFloat16> {
  static constexpr double forward = 5e-3, backward = 1e-2;
};

/// The distance of a gradient, relative to its size. One that all but vanishes (a softmax over one
/// latent, an average of one token) is rounding of numbers as large as the values' gradient.
template <class T>
double gradient_error(const std::vector<T>& found, const std::vector<double>& exact,
                      const std::vector<double>& d_values) {
  const auto norm = [](const auto& x) {
    double sum = 0;
    for (const auto& value : x) sum += double{widen(value)} * double{widen(value)};
    return std::sqrt(sum);
  };
  if (norm(exact) > 1e-4 * norm(d_values)) return relative_rms(found, exact);
  std::vector<double> difference = exact;
  for (std::size_t i = 0; i < exact.size(); ++i) difference[i] -= double{widen(found[i])};
  return norm(difference) / norm(d_values);
}

/// Values against the definition; gradients against those of the kernel in double, which
/// `check_slopes` traces back to the definition.
template <template <class> class Family, class T>
void compare(const Shape& shape, const typename Family<T>::Sizes& like, int threads = 2) {
  CAPTURE(shape.length, shape.latents, shape.value_dim, shape.spread, shape.masked, threads);
  Recurrent<Family, T> problem(shape, like);
  problem.forward(threads);
  CHECK(relative_rms(problem.out, problem.define()) < RecurrentBars<T>::forward);
  problem.backward(threads);
  auto exact = problem.in_double();
  exact.forward(1);
  exact.backward(1);
  CHECK(gradient_error(problem.d_query, exact.d_query, exact.d_values) <
        RecurrentBars<T>::backward);
  CHECK(gradient_error(problem.d_key, exact.d_key, exact.d_values) < RecurrentBars<T>::backward);
  CHECK(relative_rms(problem.d_values, exact.d_values) < RecurrentBars<T>::backward);
}

/// Derivatives along random directions against central differences of the definition.
template <template <class> class Family>
void check_slopes(const Shape& shape, const typename Family<double>::Sizes& like) {
  CAPTURE(shape.length, shape.latents, shape.value_dim, shape.spread, shape.masked);
  Recurrent<Family, double> problem(shape, like);
  problem.forward(2);
  problem.backward(2);
  std::mt19937 engine(5);
  std::normal_distribution<double> normal;
  const auto loss = [&] {
    const auto y = problem.define();
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * problem.d_out[i];
    return sum;
  };
  const auto check = [&](std::vector<double>& x, const std::vector<double>& gradient) {
    const std::vector<double> at = x;
    std::vector<double> direction(x.size());
    double along = 0, size = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      direction[i] = normal(engine);
      along += gradient[i] * direction[i];
      size += gradient[i] * gradient[i];
    }
    const double step = 1e-5;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = at[i] + step * direction[i];
    const double above = loss();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = at[i] - step * direction[i];
    const double below = loss();
    x = at;
    CHECK(along == Approx((above - below) / (2 * step)).margin(1e-7 * std::sqrt(size)));
  };
  check(problem.query, problem.d_query);
  check(problem.key, problem.d_key);
  check(problem.values, problem.d_values);
}

}  // namespace attnbench::kernels::test
