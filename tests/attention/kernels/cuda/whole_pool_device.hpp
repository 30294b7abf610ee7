// The pool without an order on the device, for tests: its arrays, and how it is held to its
// definition.
#pragma once

#include <cmath>
#include <stdexcept>
#include <utility>

#include "attention/kernels/cuda/pool/whole_pool.hpp"
#include "tests/attention/kernels/cuda/recurrent_device.hpp"
#include "tests/attention/kernels/whole_pool_problem.hpp"

namespace attnbench::kernels::cuda::test {

using kernels::test::gradient_error;
using kernels::test::in_double;
using kernels::test::pool_kinds;
using kernels::test::relative_rms;
using kernels::test::sized;
using kernels::test::stored;
using kernels::test::WholePool;

/// Gradients are the tensor cores' up to 128 columns of values, and as exact as results.
template <class T>
double grad_bar(const WholePoolSizes& sizes) {
  return sizes.value_dim <= 128 && !std::is_same_v<T, float> ? bar<T> : gradient_bar<T>;
}

/// Rows of a problem on the device, `gap` numbers from one to the next.
template <class T>
struct Spaced {
  DeviceArray<T> numbers;
  Rows<T> rows;

  Spaced(const std::vector<T>& dense, std::int64_t heads, std::int64_t length, std::int64_t width,
         std::int64_t gap)
      : numbers(spread(dense, width, gap)),
        rows{numbers.data(), heads * length * (width + gap), length * (width + gap), width + gap} {}

  static std::vector<T> spread(const std::vector<T>& dense, std::int64_t width, std::int64_t gap) {
    std::vector<T> to;
    for (std::size_t i = 0; i < dense.size(); ++i) {
      to.push_back(dense[i]);
      if (static_cast<std::int64_t>(i) % width != width - 1) continue;
      for (std::int64_t j = 0; j < gap; ++j) to.push_back(stored<T>(NAN));
    }
    return to;
  }
  Rows<const T> read() const {
    return {rows.data, rows.batch_stride, rows.head_stride, rows.row_stride};
  }
  /// What was written, dense again; throws where something was written between rows.
  std::vector<T> written(std::int64_t width) const {
    const std::vector<T> all = numbers.values();
    std::vector<T> dense;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto column = static_cast<std::int64_t>(i) % rows.row_stride;
      if (column < width) {
        dense.push_back(all[i]);
      } else if (!std::isnan(widen(all[i]))) {
        throw std::logic_error("a kernel wrote between rows");
      }
    }
    return dense;
  }
};

/// A problem with its arrays on the device.
template <class T>
struct PoolOnDevice {
  WholePool<T> problem;
  std::int64_t gap;
  Spaced<T> query, scores, values;
  DeviceArray<std::uint8_t> mask;

  explicit PoolOnDevice(WholePool<T> p, std::int64_t between = 0)
      : problem(std::move(p)),
        gap(between),
        query(made(problem.query, problem.sizes.length, problem.sizes.latents)),
        scores(made(problem.scores, problem.sizes.key_length, problem.sizes.latents)),
        values(made(problem.values, problem.sizes.key_length, problem.sizes.value_dim)),
        mask(problem.mask) {}

  Spaced<T> made(const std::vector<T>& x, std::int64_t length, std::int64_t width) const {
    return {x, problem.sizes.heads, length, width, gap};
  }
  Spaced<T> unwritten(std::size_t count, std::int64_t length, std::int64_t width) const {
    return made(std::vector<T>(count, stored<T>(NAN)), length, width);
  }
  WholePoolArguments<T> arguments() const {
    WholePoolArguments<T> a;
    a.query = query.read();
    a.scores = scores.read();
    a.values = values.read();
    if (!problem.mask.empty()) a.key_mask = mask.data();
    a.mask_stride = problem.sizes.key_length;
    return a;
  }
  std::vector<T> forward() const {
    const auto& sizes = problem.sizes;
    const Spaced<T> out = unwritten(problem.out.size(), sizes.length, sizes.value_dim);
    auto a = arguments();
    a.out = out.rows;
    const std::size_t bytes = whole_pool_forward_bytes<T>(sizes);
    const DeviceArray<unsigned char> space(bytes);
    whole_pool_forward(sizes, a, {}, space.data(), bytes);
    synchronize();
    space.values();  // throws where something was written past the end
    return out.written(sizes.value_dim);
  }
  WholePool<T> backward() const {
    const auto& sizes = problem.sizes;
    const Spaced<T> d_out = made(problem.d_out, sizes.length, sizes.value_dim);
    const Spaced<T> d_query = unwritten(problem.query.size(), sizes.length, sizes.latents);
    const Spaced<T> d_scores = unwritten(problem.scores.size(), sizes.key_length, sizes.latents);
    const Spaced<T> d_values = unwritten(problem.values.size(), sizes.key_length, sizes.value_dim);
    const std::size_t bytes = whole_pool_backward_bytes<T>(sizes);
    const DeviceArray<unsigned char> space(bytes);
    const PrefixPoolGradients<T> gradients{d_out.read(), d_query.rows, d_scores.rows,
                                           d_values.rows};
    whole_pool_backward(sizes, arguments(), gradients, {}, space.data(), bytes);
    synchronize();
    space.values();
    WholePool<T> found = problem;
    found.d_query = d_query.written(sizes.latents);
    found.d_scores = d_scores.written(sizes.latents);
    found.d_values = d_values.written(sizes.value_dim);
    return found;
  }
};

/// Values against the definition.
template <class T>
void compare(const WholePoolSizes& sizes, double spread = 1, bool masked = false,
             std::int64_t gap = 0) {
  CAPTURE(static_cast<int>(sizes.query), sizes.length, sizes.key_length, sizes.latents,
          sizes.value_dim, spread, masked, gap);
  const PoolOnDevice<T> device(WholePool<T>(sizes, spread, masked), gap);
  CHECK(relative_rms(device.forward(), device.problem.define()) < bar<T>);
}

/// Gradients against those of the CPU's kernel in double, which its tests trace back to the
/// definition. Those of queries may be twice as wrong as a naive run's, where that is given.
template <class T>
void compare_gradients(const WholePool<T>& problem, std::int64_t gap = 0, double naive = 0) {
  const auto& sizes = problem.sizes;
  CAPTURE(static_cast<int>(sizes.query), sizes.length, sizes.key_length, sizes.latents,
          sizes.value_dim, problem.mask.size(), gap, naive);
  const WholePool<T> found = PoolOnDevice<T>(problem, gap).backward();
  auto exact = problem.widened();
  exact.backward(1);
  const auto& large = exact.d_values;
  CHECK(gradient_error(found.d_query, exact.d_query, large) <
        std::max(grad_bar<T>(sizes), 2 * naive));
  CHECK(gradient_error(found.d_scores, exact.d_scores, large) < grad_bar<T>(sizes));
  CHECK(gradient_error(found.d_values, exact.d_values, large) < grad_bar<T>(sizes));
}

/// The error of queries' gradients, of one head that hides none, where each array of the textbook's
/// way is rounded to T as it is stored: weights, averages, results, gradients of weights and of
/// logits. All sums are in double.
template <class T>
double naive_query_error(const WholePool<T>& problem) {
  const auto& sizes = problem.sizes;
  const auto latents = static_cast<std::size_t>(sizes.latents);
  const auto dim = static_cast<std::size_t>(sizes.value_dim);
  const auto keys = static_cast<std::size_t>(sizes.key_length);
  const auto round = [](double x) { return double{widen(stored<T>(x))}; };
  const auto weigh = [&](std::vector<double> logits) {
    const double most = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (double& x : logits) sum += x = std::exp(x - most);
    for (double& x : logits) x = round(x / sum);
    return logits;
  };
  const bool given = sizes.query == PoolQuery::weights;
  const bool normalised = sizes.query == PoolQuery::logits_plus_z;
  std::vector<double> averages(latents * dim), normaliser(latents);
  for (std::size_t l = 0; l < latents; ++l) {
    std::vector<double> w(keys);
    for (std::size_t s = 0; s < keys; ++s) {
      w[s] = sizes.scale * widen(problem.scores[s * latents + l]);
      normaliser[l] += std::exp(w[s]);
    }
    normaliser[l] = normalised ? std::log(normaliser[l]) : 0;
    w = weigh(w);
    for (std::size_t d = 0; d < dim; ++d) {
      double sum = 0;
      for (std::size_t s = 0; s < keys; ++s) sum += w[s] * widen(problem.values[s * dim + d]);
      averages[l * dim + d] = round(sum);
    }
  }
  std::vector<double> found;
  for (std::size_t t = 0; t < static_cast<std::size_t>(sizes.length); ++t) {
    std::vector<double> p(latents), x(latents);
    for (std::size_t l = 0; l < latents; ++l) {
      p[l] = widen(problem.query[t * latents + l]);
      if (!given) p[l] = sizes.scale * p[l] + normaliser[l];
    }
    if (!given) p = weigh(p);
    double dot = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      double y = 0;
      const double g = widen(problem.d_out[t * dim + d]);
      for (std::size_t l = 0; l < latents; ++l) {
        y += p[l] * averages[l * dim + d];
        x[l] += g * averages[l * dim + d];
      }
      dot += g * round(y);
    }
    for (std::size_t l = 0; l < latents; ++l) {
      x[l] = round(x[l]);
      found.push_back(given ? x[l] : round(sizes.scale * p[l] * (x[l] - dot)));
    }
  }
  auto exact = problem.widened();
  exact.backward(1);
  return relative_rms(found, exact.d_query);
}

/// Of one score a token: one token weighs 2^26 times as much as any other, and the others' values
/// are so much larger that they make two thirds of the average.
template <class T>
void outweigh(WholePool<T>& problem) {
  std::fill(problem.scores.begin(), problem.scores.end(), stored<T>(0));
  problem.scores[100] = stored<T>(22.5);  // times the scale of 0.8
  const auto width = static_cast<std::size_t>(problem.sizes.value_dim);
  for (std::size_t i = 0; i < problem.values.size(); ++i) {
    problem.values[i] = stored<T>(i / width == 100 ? 0.01 : 1000);
  }
}

inline WholePoolSizes one_head(PoolQuery kind, std::int64_t length, std::int64_t keys,
                               std::int64_t latents, std::int64_t dim) {
  WholePoolSizes sizes = sized(kind, length, keys, latents, dim);
  sizes.batch = sizes.heads = 1;
  return sizes;
}

}  // namespace attnbench::kernels::cuda::test
