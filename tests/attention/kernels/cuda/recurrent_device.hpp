// A recurrent problem on the device, held to its definition in double on the CPU.
#pragma once

#include <algorithm>

#include "tests/attention/kernels/cuda/device_array.hpp"
#include "tests/attention/kernels/recurrent_families.hpp"

namespace attnbench::kernels::cuda::test {

using kernels::test::Recurrent;
using kernels::test::Shape;

#ifdef ATTNBENCH_EMULATED
constexpr bool emulated = true;  // where every product costs time: fewer sizes, the same kinds
#else
constexpr bool emulated = false;
#endif

/// How far results may lie from the definition, relative to their size.
template <class T>
constexpr double bar = 3e-6;
template <>
inline constexpr double bar<BFloat16> = 6e-3;
template <>
inline constexpr double bar<Half> = 1e-3;

/// The same for gradients, which are fp32 until they are stored.
template <class T>
constexpr double gradient_bar = 2e-5;
template <>
inline constexpr double gradient_bar<BFloat16> = 3e-3;
template <>
inline constexpr double gradient_bar<Half> = 5e-4;

/// Some rows of the definition, and of what was found: every one of a short sequence.
struct Sample {
  std::vector<double> found, expected;
  double error() const { return kernels::test::relative_rms(found, expected); }
};

/// A problem with its arrays on the device. `Device<T>` says how the family's kernel is called
/// there.
template <template <class> class Device, template <class> class Family, class T>
struct OnDevice {
  using D = Device<T>;
  Recurrent<Family, T> problem;
  DeviceArray<T> query, key, values;
  DeviceArray<std::uint8_t> mask;

  explicit OnDevice(Recurrent<Family, T> p)
      : problem(std::move(p)),
        query(problem.query),
        key(problem.key),
        values(problem.values),
        mask(problem.mask) {}

  /// Tokens [begin, begin + sizes.length) of the arguments, without results.
  typename Family<T>::Arguments arguments(std::int64_t begin = 0) const {
    typename Family<T>::Arguments a;
    const Shape& s = problem.shape;
    const auto from = [&](const DeviceArray<T>& x, std::int64_t width) {
      auto rows = x.template rows<T>(s.heads, s.length, width);
      return Rows<const T>{rows.data + begin * width, rows.batch_stride, rows.head_stride,
                           rows.row_stride};
    };
    Family<T>::set_inputs(a, from(query, s.latents), from(key, s.latents),
                          from(values, s.value_dim));
    if (!problem.mask.empty()) a.key_mask = mask.data() + begin;
    a.mask_stride = s.length;
    return a;
  }
  static void run(const typename Family<T>::Sizes& sizes,
                  const typename Family<T>::Arguments& arguments, Stream stream = {}) {
    const std::size_t bytes = D::forward_bytes(sizes);
    const DeviceArray<unsigned char> space(bytes);
    D::forward(sizes, arguments, stream, space.data(), bytes);
    synchronize(stream);
    space.values();  // throws where something was written past the end
  }
  std::vector<T> forward() const {
    const Shape& s = problem.shape;
    DeviceArray<T> out(problem.out.size());
    auto a = arguments();
    a.out = out.rows(s.heads, s.length, s.value_dim);
    run(problem.sizes, a);
    return out.values();
  }
  /// Gradients against those of the CPU's kernel in double, which its tests trace back to the
  /// definition: the greatest of the three distances.
  double gradient_error() const {
    const Shape& s = problem.shape;
    const std::int64_t heads = s.heads, length = s.length;
    const DeviceArray<T> d_out(problem.d_out);
    DeviceArray<T> d_query(problem.query.size()), d_key(problem.key.size()),
        d_values(problem.values.size());
    const std::size_t bytes = D::backward_bytes(problem.sizes);
    const DeviceArray<unsigned char> space(bytes);
    D::backward(problem.sizes, arguments(),
                d_out.template rows<const T>(heads, length, s.value_dim),
                d_query.rows(heads, length, s.latents), d_key.rows(heads, length, s.latents),
                d_values.rows(heads, length, s.value_dim), space.data(), bytes);
    space.values();
    auto exact = problem.widened();
    exact.backward(1);
    const auto error = [&](const DeviceArray<T>& found, const std::vector<double>& expected) {
      return kernels::test::gradient_error(found.values(), expected, exact.d_values);
    };
    const double errors[] = {error(d_query, exact.d_query), error(d_key, exact.d_key),
                             error(d_values, exact.d_values)};
    double most = 0;
    for (const double x : errors) most = x <= most ? most : x;  // NaN stays
    return most;
  }
  Sample sample(const std::vector<T>& out) const {
    Sample result;
    const Shape& s = problem.shape;
    const std::int64_t stride = std::max<std::int64_t>(1, s.length / 24);
    const std::int64_t heads = s.batch * s.heads;
    for (std::int64_t head = 0; head<heads; head += heads> 8 ? heads - 1 : 1) {
      const T* const q = problem.query.data() + head * s.length * s.latents;
      const T* const k = problem.key.data() + head * s.length * s.latents;
      const std::function<bool(std::int64_t)> seen = [&](std::int64_t t) {
        return problem.real(head / s.heads, t);
      };
      for (std::int64_t t = s.length - 1; t >= 0; t -= s.length > 300 ? stride : 1) {
        std::vector<double> row(static_cast<std::size_t>(s.value_dim), 0.0);
        std::int64_t first = 0;  // nothing is defined before a token was seen, and results are 0
        while (first <= t && !seen(first)) ++first;
        std::vector<double> weights;
        if (first <= t) weights = Family<T>::weights(problem.sizes, q, k, t, seen);
        for (std::int64_t u = first; u <= t; ++u) {
          const T* const v = problem.values.data() + (head * s.length + u) * s.value_dim;
          for (std::size_t d = 0; d < row.size(); ++d) {
            row[d] += weights[static_cast<std::size_t>(u)] * double{widen(v[d])};
          }
        }
        const T* const y = out.data() + (head * s.length + t) * s.value_dim;
        for (std::size_t d = 0; d < row.size(); ++d) result.found.push_back(double{widen(y[d])});
        result.expected.insert(result.expected.end(), row.begin(), row.end());
      }
    }
    return result;
  }
};

}  // namespace attnbench::kernels::cuda::test
