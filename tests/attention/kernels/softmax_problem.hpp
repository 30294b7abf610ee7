// A softmax problem with its memory, and its values and gradients by the definition in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/kernels/softmax.hpp"
#include "tests/attention/kernels/arrays.hpp"

namespace attnbench::kernels::test {

/// As many keys as queries, two heads.
inline SoftmaxSizes square(std::int64_t length, std::int64_t dim, bool causal) {
  SoftmaxSizes sizes;
  sizes.heads = sizes.kv_heads = 2;
  sizes.length = sizes.key_length = length;
  sizes.head_dim = sizes.value_dim = dim;
  sizes.scale = 1 / std::sqrt(static_cast<double>(dim));
  if (causal) sizes.right = 0;
  return sizes;
}

template <class T>
struct Problem {
  SoftmaxSizes sizes;
  std::vector<T> q, k, v, d_out, out, dq, dk, dv;
  std::vector<std::uint8_t> mask;
  std::vector<Compute<T>> lse, bias, d_bias;

  explicit Problem(const SoftmaxSizes& s, double spread = 1.0, bool masked = false) : sizes(s) {
    std::mt19937 engine(7);
    q = drawn<T>(engine, s.batch * s.heads * s.length * s.head_dim, spread);
    k = drawn<T>(engine, s.batch * s.kv_heads * s.key_length * s.head_dim, spread);
    v = drawn<T>(engine, s.batch * s.kv_heads * s.key_length * s.value_dim, spread);
    d_out = drawn<T>(engine, s.batch * s.heads * s.length * s.value_dim, spread);
    out.resize(d_out.size());
    dq.resize(q.size());
    dk.resize(k.size());
    dv.resize(v.size());
    lse.resize(static_cast<std::size_t>(s.batch * s.heads * s.length));
    for (std::int64_t i = -s.bias_reach; i <= s.bias_reach; ++i) {
      bias.push_back(static_cast<Compute<T>>(2 * std::sin(0.7 * static_cast<double>(i * i + i))));
    }
    d_bias = bias;
    if (masked) mask = drawn_mask(engine, s.batch * s.key_length);
  }
  SoftmaxArguments<T> arguments() {
    SoftmaxArguments<T> a;
    a.q = rows_of<const T>(q, sizes.heads, sizes.length, sizes.head_dim);
    a.k = rows_of<const T>(k, sizes.kv_heads, sizes.key_length, sizes.head_dim);
    a.v = rows_of<const T>(v, sizes.kv_heads, sizes.key_length, sizes.value_dim);
    a.out = rows_of<T>(out, sizes.heads, sizes.length, sizes.value_dim);
    a.lse = lse.data();
    a.bias = bias.data();
    if (!mask.empty()) a.key_mask = mask.data();
    a.mask_stride = sizes.key_length;
    return a;
  }
  void forward(int threads) {
    on_workspace(threads, softmax_forward_bytes<T>(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   softmax_forward(sizes, arguments(), team, space, bytes);
                 });
  }
  void backward(int threads) {
    SoftmaxGradients<T> g;
    g.d_out = rows_of<const T>(d_out, sizes.heads, sizes.length, sizes.value_dim);
    g.dq = rows_of<T>(dq, sizes.heads, sizes.length, sizes.head_dim);
    g.dk = rows_of<T>(dk, sizes.kv_heads, sizes.key_length, sizes.head_dim);
    g.dv = rows_of<T>(dv, sizes.kv_heads, sizes.key_length, sizes.value_dim);
    g.d_bias = d_bias.data();
    on_workspace(threads, softmax_backward_bytes<T>(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   softmax_backward(sizes, arguments(), g, team, space, bytes);
                 });
  }
  bool sees(std::int64_t b, std::int64_t t, std::int64_t s) const {
    const std::int64_t distance = s - t - sizes.offset;
    return distance >= -sizes.left && distance <= sizes.right &&
           (mask.empty() || mask[static_cast<std::size_t>(b * sizes.key_length + s)] != 0);
  }
};

/// Values, logarithms of the sums and gradients by the definition, in double.
struct Expected {
  std::vector<double> out, dq, dk, dv, lse, d_bias;
};

/// a . b, in four sums side by side, which compilers keep in vectors.
ATTNBENCH_PLAIN_LOOPS inline double dot(const double* a, const double* b, std::int64_t n) {
  double sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}
/// y += factor x.
ATTNBENCH_PLAIN_LOOPS inline void add(double factor, const double* __restrict x,
                                      double* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

/// One query and the keys that it sees. In plain loops over pointers, which the sanitizers' build
/// optimises and does not instrument: its subject are the kernels.
struct DefinedRow {
  std::int64_t head_dim, value_dim;
  double scale;
  const std::vector<std::int64_t>& seen;  ///< which keys
  const double *q, *k, *v, *d_out;        ///< the query, all keys and values of its head, its d_out
  double *out, *dq, *dk, *dv;             ///< what is added to, likewise
  std::vector<double> weight, d_weight;   ///< of each key that is seen; weight begins as its bias
  double delta = 0;                       ///< of the weights' gradient

  /// Returns the logarithm of the sum.
  ATTNBENCH_PLAIN_LOOPS double define() {
    const std::size_t count = seen.size();
    const std::int64_t* const of = seen.data();
    double *const w = weight.data(), *const dw = d_weight.data();
    double greatest = -1e300, sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      w[i] += scale * dot(q, k + of[i] * head_dim, head_dim);
      if (w[i] > greatest) greatest = w[i];
    }
    for (std::size_t i = 0; i < count; ++i) sum += w[i] = std::exp(w[i] - greatest);
    for (std::size_t i = 0; i < count; ++i) {
      w[i] /= sum;
      dw[i] = dot(d_out, v + of[i] * value_dim, value_dim);
      add(w[i], v + of[i] * value_dim, out, value_dim);
      add(w[i], d_out, dv + of[i] * value_dim, value_dim);
      delta += w[i] * dw[i];
    }
    for (std::size_t i = 0; i < count; ++i) {
      const double d_score = scale * w[i] * (dw[i] - delta);
      add(d_score, k + of[i] * head_dim, dq, head_dim);
      add(d_score, q, dk + of[i] * head_dim, head_dim);
    }
    return greatest + std::log(sum);
  }
};

template <class T>
Expected define(const Problem<T>& p) {
  const auto& z = p.sizes;
  Expected e{std::vector<double>(p.out.size()),
             std::vector<double>(p.q.size()),
             std::vector<double>(p.k.size()),
             std::vector<double>(p.v.size()),
             std::vector<double>(p.lse.size(), std::numeric_limits<double>::infinity()),
             std::vector<double>(p.bias.size())};
  const std::vector<double> q = in_double(p.q), k = in_double(p.k), v = in_double(p.v);
  const std::vector<double> d_out = in_double(p.d_out);
  const auto place = [&](std::int64_t t, std::int64_t s) {
    return static_cast<std::size_t>(s - t - z.offset + z.bias_reach);
  };
  std::vector<std::int64_t> seen;
  for (std::int64_t row = 0; row < z.batch * z.heads * z.length; ++row) {
    const std::int64_t head = row / z.length, t = row % z.length, b = head / z.heads;
    const std::int64_t kv = b * z.kv_heads + head % z.heads / (z.heads / z.kv_heads);
    seen.clear();
    for (std::int64_t s = 0; s < z.key_length; ++s) {
      if (p.sees(b, t, s)) seen.push_back(s);
    }
    if (seen.empty()) continue;
    const std::int64_t q0 = row * z.head_dim, o0 = row * z.value_dim;
    const std::int64_t k0 = kv * z.key_length * z.head_dim, v0 = kv * z.key_length * z.value_dim;
    const std::vector<double> none(seen.size(), 0.0);
    DefinedRow of{z.head_dim,
                  z.value_dim,
                  z.scale,
                  seen,
                  q.data() + q0,
                  k.data() + k0,
                  v.data() + v0,
                  d_out.data() + o0,
                  e.out.data() + o0,
                  e.dq.data() + q0,
                  e.dk.data() + k0,
                  e.dv.data() + v0,
                  none,
                  none};
    for (std::size_t i = 0; i < seen.size() && !p.bias.empty(); ++i) {
      of.weight[i] = double{p.bias[place(t, seen[i])]};
    }
    e.lse[static_cast<std::size_t>(row)] = of.define();
    for (std::size_t i = 0; i < seen.size() && !p.bias.empty(); ++i) {
      e.d_bias[place(t, seen[i])] += of.weight[i] * (of.d_weight[i] - of.delta);
    }
  }
  return e;
}

}  // namespace attnbench::kernels::test
