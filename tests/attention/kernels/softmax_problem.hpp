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

template <class T>
Expected define(const Problem<T>& p) {
  const auto& z = p.sizes;
  Expected e{std::vector<double>(p.out.size()),
             std::vector<double>(p.q.size()),
             std::vector<double>(p.k.size()),
             std::vector<double>(p.v.size()),
             std::vector<double>(p.lse.size(), std::numeric_limits<double>::infinity()),
             std::vector<double>(p.bias.size())};
  const auto place = [&](std::int64_t t, std::int64_t s) {
    return static_cast<std::size_t>(s - t - z.offset + z.bias_reach);
  };
  const auto dot = [](const T* a, const T* b, std::int64_t n) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += double{widen(a[i])} * double{widen(b[i])};
    return sum;
  };
  for (std::int64_t head = 0; head < z.batch * z.heads; ++head) {
    const std::int64_t b = head / z.heads;
    const std::int64_t kv = b * z.kv_heads + head % z.heads / (z.heads / z.kv_heads);
    for (std::int64_t t = 0; t < z.length; ++t) {
      const std::int64_t q0 = (head * z.length + t) * z.head_dim;
      const std::int64_t o0 = (head * z.length + t) * z.value_dim;
      std::vector<double> weight(static_cast<std::size_t>(z.key_length), 0.0);
      double greatest = -1e300, sum = 0;
      for (std::int64_t s = 0; s < z.key_length; ++s) {
        if (!p.sees(b, t, s)) continue;
        const std::int64_t k0 = (kv * z.key_length + s) * z.head_dim;
        weight[s] = z.scale * dot(&p.q[q0], &p.k[k0], z.head_dim);
        if (!p.bias.empty()) weight[s] += double{p.bias[place(t, s)]};
        greatest = std::max(greatest, weight[s]);
      }
      for (std::int64_t s = 0; s < z.key_length; ++s) {
        weight[s] = p.sees(b, t, s) ? std::exp(weight[s] - greatest) : 0;
        sum += weight[s];
      }
      if (sum == 0) continue;
      e.lse[static_cast<std::size_t>(head * z.length + t)] = greatest + std::log(sum);
      double delta = 0;
      std::vector<double> d_weight(weight.size(), 0.0);
      for (std::int64_t s = 0; s < z.key_length; ++s) {
        weight[s] /= sum;
        const std::int64_t v0 = (kv * z.key_length + s) * z.value_dim;
        d_weight[s] = dot(&p.d_out[o0], &p.v[v0], z.value_dim);
        delta += weight[s] * d_weight[s];
        for (std::int64_t d = 0; d < z.value_dim; ++d) {
          e.out[o0 + d] += weight[s] * widen(p.v[v0 + d]);
          e.dv[v0 + d] += weight[s] * widen(p.d_out[o0 + d]);
        }
      }
      for (std::int64_t s = 0; s < z.key_length; ++s) {
        const double d_score = z.scale * weight[s] * (d_weight[s] - delta);
        if (!p.bias.empty() && p.sees(b, t, s)) {
          e.d_bias[place(t, s)] += weight[s] * (d_weight[s] - delta);
        }
        const std::int64_t k0 = (kv * z.key_length + s) * z.head_dim;
        for (std::int64_t d = 0; d < z.head_dim; ++d) {
          e.dq[q0 + d] += d_score * widen(p.k[k0 + d]);
          e.dk[k0 + d] += d_score * widen(p.q[q0 + d]);
        }
      }
    }
  }
  return e;
}

}  // namespace attnbench::kernels::test
