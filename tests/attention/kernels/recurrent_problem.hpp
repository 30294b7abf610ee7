// A problem of a recurrent family with its memory: query and key [B, H, T, L], values [B, H, T, D].
// A family's traits say how its kernel is called and what its numbers are by definition, in double.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>

#include "tests/attention/kernels/arrays.hpp"
#include "tests/attention/kernels/closeness.hpp"

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
    const std::int64_t tokens = s.batch * s.heads * s.length;
    query = drawn<T>(engine, tokens * s.latents, s.spread);
    key = drawn<T>(engine, tokens * s.latents, s.spread);
    values = drawn<T>(engine, tokens * s.value_dim, 1);
    d_out = drawn<T>(engine, tokens * s.value_dim, 1);
    out = d_out;
    d_query = query;
    d_key = key;
    d_values = values;
    if (s.masked) mask = drawn_mask(engine, s.batch * s.length);
  }
  /// The same numbers, as they are stored, in double.
  Recurrent<Family, double> widened() const {
    Recurrent<Family, double> copy(shape, sizes);
    copy.query = in_double(query);
    copy.key = in_double(key);
    copy.values = in_double(values);
    copy.d_out = in_double(d_out);
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
    if constexpr (requires { F::log_decays(); }) F::set_decays(a, F::log_decays().data(), begin);
    if (!mask.empty()) a.key_mask = mask.data() + begin;
    a.mask_stride = shape.length;
    return a;
  }
  void forward(int threads) { run(sizes, arguments(), threads); }
  static void run(const typename F::Sizes& sizes, const typename F::Arguments& arguments,
                  int threads) {
    on_workspace(threads, F::forward_bytes(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   F::forward(sizes, arguments, team, space, bytes);
                 });
  }
  void backward(int threads) { backward(threads, arguments(), d_out.data(), d_values.data()); }
  void backward(int threads, const typename F::Arguments& a, const T* upstream, T* to_values) {
    auto from = rows<const T>(d_out, shape.value_dim);
    auto to = rows<T>(d_values, shape.value_dim);
    from.data = upstream;
    to.data = to_values;
    on_workspace(threads, F::backward_bytes(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   F::backward(sizes, a, from, rows<T>(d_query, shape.latents),
                               rows<T>(d_key, shape.latents), to, team, space, bytes);
                 });
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

/// Values against the definition; gradients against those of the kernel in double, which
/// `check_grads` traces back to the definition.
template <template <class> class Family, class T>
void compare(const Shape& shape, const typename Family<T>::Sizes& like, int threads = 2) {
  CAPTURE(shape.length, shape.latents, shape.value_dim, shape.spread, shape.masked, threads);
  Recurrent<Family, T> problem(shape, like);
  problem.forward(threads);
  CHECK(relative_rms(problem.out, problem.define()) < Bars<T>::forward);
  problem.backward(threads);
  auto exact = problem.widened();
  exact.forward(1);
  exact.backward(1);
  CHECK(gradient_error(problem.d_query, exact.d_query, exact.d_values) < Bars<T>::backward);
  CHECK(gradient_error(problem.d_key, exact.d_key, exact.d_values) < Bars<T>::backward);
  CHECK(relative_rms(problem.d_values, exact.d_values) < Bars<T>::backward);
}

/// Values, results and gradients of values that fill whole cache lines are scanned where they lie,
/// others in copies: the same bits.
template <template <class> class Family>
void check_lying(const Shape& shape, const typename Family<float>::Sizes& like, int threads) {
  CAPTURE(shape.length, shape.latents, shape.value_dim, threads);
  Recurrent<Family, float> problem(shape, like);
  const std::size_t bytes = problem.values.size() * sizeof(float);
  Block values(bytes + 4), out(bytes + 4), d_out(bytes + 4), d_values(bytes + 4);
  std::vector<float> first, grads, value_grads;
  for (const std::size_t beside : {std::size_t{0}, std::size_t{4}}) {
    auto arguments = problem.arguments();
    std::byte* const from = static_cast<std::byte*>(values.data()) + beside;
    std::byte* const to = static_cast<std::byte*>(out.data()) + beside;
    std::memcpy(from, problem.values.data(), bytes);
    arguments.values.data = reinterpret_cast<const float*>(from);
    arguments.out.data = reinterpret_cast<float*>(to);
    problem.run(problem.sizes, arguments, threads);
    std::memcpy(problem.out.data(), to, bytes);
    std::byte* const upstream = static_cast<std::byte*>(d_out.data()) + beside;
    std::memcpy(upstream, problem.d_out.data(), bytes);
    std::byte* const to_values = static_cast<std::byte*>(d_values.data()) + beside;
    problem.backward(threads, arguments, reinterpret_cast<const float*>(upstream),
                     reinterpret_cast<float*>(to_values));
    std::memcpy(problem.d_values.data(), to_values, bytes);
    if (beside == 0) {
      first = problem.out;
      grads = problem.d_key;
      value_grads = problem.d_values;
    }
  }
  REQUIRE(out.intact());
  REQUIRE(d_values.intact());
  CHECK(first == problem.out);
  CHECK(grads == problem.d_key);
  CHECK(value_grads == problem.d_values);
  CHECK(relative_rms(first, problem.define()) < Bars<float>::forward);
}

/// Derivatives along random directions against central differences of the definition.
template <template <class> class Family>
void check_grads(Recurrent<Family, double> problem);
template <template <class> class Family>
void check_grads(const Shape& shape, const typename Family<double>::Sizes& like) {
  CAPTURE(shape.length, shape.latents, shape.value_dim, shape.spread, shape.masked);
  check_grads(Recurrent<Family, double>(shape, like));
}
template <template <class> class Family>
void check_grads(Recurrent<Family, double> problem) {
  problem.forward(2);
  problem.backward(2);
  std::mt19937 engine(5);
  const auto loss = [&] { return inner(problem.define(), problem.d_out); };
  check_grad(engine, loss, problem.query, problem.d_query);
  check_grad(engine, loss, problem.key, problem.d_key);
  check_grad(engine, loss, problem.values, problem.d_values);
}

/// Gradients of queries and keys are sums over the columns of values: those of a large memory,
/// which the kernel makes in another way, against those of its columns a few at a time.
template <template <class> class Family>
void check_columns(const Shape& shape, const typename Family<double>::Sizes& like, int threads) {
  CAPTURE(shape.length, shape.latents, shape.value_dim, shape.masked, threads);
  Recurrent<Family, double> whole(shape, like);
  whole.backward(threads);
  std::vector<double> d_query(whole.d_query.size(), 0.0), d_key(d_query);
  constexpr std::int64_t width = 8;
  for (std::int64_t first = 0; first < shape.value_dim; first += width) {
    Shape part_shape = shape;
    part_shape.value_dim = std::min(width, shape.value_dim - first);
    Recurrent<Family, double> part(part_shape, like);
    part.query = whole.query;
    part.key = whole.key;
    part.mask = whole.mask;
    for (std::size_t i = 0; i < part.values.size(); ++i) {
      const auto columns = static_cast<std::size_t>(part_shape.value_dim);
      const std::size_t from = i / columns * static_cast<std::size_t>(shape.value_dim) +
                               static_cast<std::size_t>(first) + i % columns;
      part.values[i] = whole.values[from];
      part.d_out[i] = whole.d_out[from];
    }
    part.backward(threads);
    for (std::size_t i = 0; i < d_key.size(); ++i) {
      d_query[i] += part.d_query[i];
      d_key[i] += part.d_key[i];
    }
  }
  CHECK(relative_rms(whole.d_query, d_query) < 1e-12);
  CHECK(relative_rms(whole.d_key, d_key) < 1e-12);
}

}  // namespace attnbench::kernels::test
