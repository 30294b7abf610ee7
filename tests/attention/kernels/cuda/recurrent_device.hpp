// A recurrent problem on the device, held to its definition in double on the CPU.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "tests/attention/kernels/cuda/device_array.hpp"
#include "tests/attention/kernels/recurrent_families.hpp"

namespace attnbench::kernels::cuda::test {

using kernels::test::Recurrent;
using kernels::test::Shape;

/// How far results may lie from the definition, relative to their size: a rounding of what is
/// stored, and in fp32 a few dozen along sums of some hundred terms.
template <class T>
constexpr double bar = 3e-6;
template <>
inline constexpr double bar<BFloat16> = 3e-3;
template <>
inline constexpr double bar<Half> = 5e-4;

/// The same for gradients, which go through two such sums.
template <class T>
constexpr double gradient_bar = std::is_same_v<T, float> ? 2e-5 : bar<T>;

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
  DeviceArray<Compute<T>> log_decays;

  explicit OnDevice(Recurrent<Family, T> p)
      : problem(std::move(p)),
        query(problem.query),
        key(problem.key),
        values(problem.values),
        mask(problem.mask),
        log_decays(given_decays()) {}
  static std::vector<Compute<T>> given_decays() {
    if constexpr (requires { Family<T>::log_decays(); }) return Family<T>::log_decays();
    return {};
  }

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
    if constexpr (requires { Family<T>::log_decays(); }) {
      Family<T>::set_decays(a, log_decays.data(), begin);
    }
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
  /// The same by so many tokens at a time; `carry` sets what the arguments continue from.
  template <class Carry>
  std::vector<T> forward_in_pieces(std::initializer_list<std::int64_t> pieces,
                                   const Carry& carry) const {
    const Shape& s = problem.shape;
    DeviceArray<T> out(problem.out.size());
    std::int64_t begin = 0;
    for (const std::int64_t tokens : pieces) {
      auto sizes = problem.sizes;
      sizes.length = tokens;
      auto a = arguments(begin);
      a.out = out.rows(s.heads, s.length, s.value_dim);
      a.out.data += begin * s.value_dim;
      carry(a);
      run(sizes, a);
      begin += tokens;
    }
    return out.values();
  }
  /// dLoss/dquery, dLoss/dkey and dLoss/dvalues.
  struct Gradients {
    std::vector<T> query, key, values;
  };
  Gradients gradients() const {
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
    return {d_query.values(), d_key.values(), d_values.values()};
  }
  /// Gradients against those of the CPU's kernel in double, which its tests trace back to the
  /// definition: the greatest of the three distances.
  double gradient_error() const { return gradient_error(gradients()); }
  /// `cancelled`: dLoss/dkey is a difference of far larger numbers, about as large as
  /// dLoss/dvalues, and its distance is taken relative to these.
  double gradient_error(const Gradients& found, bool cancelled = false) const {
    using kernels::test::distance;
    using kernels::test::norm;
    auto exact = problem.widened();
    exact.backward(1);
    const auto error = [&](const std::vector<T>& from, const std::vector<double>& expected) {
      return kernels::test::gradient_error(from, expected, exact.d_values);
    };
    const double of_keys = cancelled ? distance(found.key, exact.d_key) / norm(exact.d_values)
                                     : error(found.key, exact.d_key);
    const double errors[] = {error(found.query, exact.d_query), of_keys,
                             error(found.values, exact.d_values)};
    double most = 0;
    for (const double x : errors) most = most >= x || std::isnan(most) ? most : x;  // NaN stays
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

/// Values and gradients against the definition.
template <template <class> class Device, template <class> class Family, class T>
void compare(const Recurrent<Family, T>& numbers, bool gradients = true) {
  const Shape& s = numbers.shape;
  CAPTURE(s.length, s.latents, s.value_dim, s.batch, s.heads, s.spread, s.masked);
  const OnDevice<Device, Family, T> problem(numbers);
  CHECK(problem.sample(problem.forward()).error() < bar<T>);
  if (gradients) CHECK(problem.gradient_error() < gradient_bar<T>);
}

/// Every path of the kernels: one token; latents that a lane has 2, 4 and 16 of; widths of chunks
/// and what is wider; several chunks and slices of columns, none of them whole; several heads and
/// batch rows; hidden tokens. `few`: the same at the fewest of them.
template <class T>
std::vector<Shape> odd_shapes(bool few) {
  constexpr bool chunks = sizeof(T) == 2;
  std::vector<Shape> shapes{{1, 7, 5, 1, 2}, {chunks ? 70 : 35, 20, 24, 2, 1, 1, true}};
  if (few) return shapes;
  shapes.push_back({chunks ? 130 : 37, 43, 67, 1, 1});
  shapes.push_back({18, 70, 5, 1, 2});
  shapes.push_back({18, 130, 3, 1, 1});
  shapes.push_back({18, 3, 130, 1, 1});
  shapes.push_back({9, 300, 3, 1, 1});
  return shapes;
}

/// Sets keys and values of hidden tokens to NaN.
template <template <class> class Family, class T>
void fill_hidden_with_nan(Recurrent<Family, T>& numbers) {
  for (std::vector<T>* const x : {&numbers.key, &numbers.values}) {
    const std::size_t width = x->size() / numbers.mask.size();
    for (std::size_t i = 0; i < x->size(); ++i) {
      if (numbers.mask[i / width] == 0) (*x)[i] = kernels::test::stored<T>(NAN);
    }
  }
}

/// Tokens that are hidden are as if they were not there whatever they hold: the first sequence is
/// all of them and gives 0, the second begins with some. They get no gradient, and all is the same
/// bits each time. With one head.
template <template <class> class Device, template <class> class Family, class T>
void check_hidden_tokens(Recurrent<Family, T> numbers) {
  const Shape& s = numbers.shape;
  std::fill_n(numbers.mask.begin(), s.length + 3, std::uint8_t{0});
  const OnDevice<Device, Family, T> clean(numbers);
  const Sample expected = clean.sample(clean.forward());
  CHECK(expected.error() < bar<T>);
  const auto gradients = clean.gradients();
  CHECK(clean.gradient_error(gradients) < gradient_bar<T>);
  fill_hidden_with_nan(numbers);
  const OnDevice<Device, Family, T> hidden(numbers);
  const std::vector<T> out = hidden.forward();
  CHECK(clean.sample(out).found == expected.found);
  CHECK(std::all_of(out.begin(), out.begin() + s.length * s.value_dim,
                    [](T y) { return widen(y) == 0; }));
  const auto found = hidden.gradients();
  using kernels::test::in_double;
  CHECK(in_double(found.query) == in_double(gradients.query));
  CHECK(in_double(found.key) == in_double(gradients.key));
  CHECK(in_double(found.values) == in_double(gradients.values));
  bool zero = true;
  for (std::size_t i = 0; i < found.key.size(); ++i) {
    const bool seen = numbers.mask[i / static_cast<std::size_t>(s.latents)] != 0;
    zero = zero && (seen || widen(found.key[i]) == 0);
  }
  CHECK(zero);
}

/// Pieces that begin with steps, go through several chunks and end within one.
inline const std::initializer_list<std::int64_t> pieces = {1, 1, 3, 64, 1, 80};
template <class T>
std::vector<Shape> shapes_in_pieces() {
  std::vector<Shape> shapes{{150, 7, 5, 1, 2}};
  if (sizeof(T) == 2) shapes.push_back({150, 70, 260, 1, 1});  // wider than a step takes
  return shapes;
}

}  // namespace attnbench::kernels::cuda::test
