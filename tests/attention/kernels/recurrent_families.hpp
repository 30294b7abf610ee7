// The recurrent families as tests see them: what a kernel is called, and what its numbers are by
// definition, in double.
#pragma once

#include <limits>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/prefix_pool.hpp"
#include "tests/attention/kernels/recurrent_problem.hpp"

namespace attnbench::kernels::test {

/// The log decay of token t in every head: most are weak; some end a block, and one
/// empties the memory.
inline double log_decay_of(std::int64_t t) {
  if (t == 90) return -std::numeric_limits<double>::infinity();
  if (t % 29 == 20) return -40;
  return t % 7 == 3 ? -2.25 : -0.03125 * static_cast<double>(t % 5);
}

template <class T>
struct Product {
  using Sizes = CausalProductSizes;
  using Arguments = CausalProductArguments<T>;

  static void resize(Sizes& sizes, const Shape& s) {
    sizes.batch = s.batch;
    sizes.heads = s.heads;
    sizes.length = s.length;
    sizes.features = s.latents;
    sizes.value_dim = s.value_dim;
  }
  static void set_inputs(Arguments& a, const Rows<const T>& query, const Rows<const T>& key,
                         const Rows<const T>& values) {
    a.query = query;
    a.key = key;
    a.values = values;
  }
  /// The log decays of all tokens, the same for each head.
  static const std::vector<Compute<T>>& log_decays() {
    static const std::vector<Compute<T>> all = [] {
      std::vector<Compute<T>> logs;
      for (std::int64_t t = 0; t < 4096; ++t) {
        logs.push_back(static_cast<Compute<T>>(log_decay_of(t)));
      }
      return logs;
    }();
    return all;
  }
  /// The arguments begin with this token; where its decays and those after it lie.
  static void set_decays(Arguments& a, const Compute<T>* from, std::int64_t begin) {
    a.log_decay = {from + begin, 0, 0, 1};
  }
  static std::size_t forward_bytes(const Sizes& s, int threads) {
    return causal_product_forward_bytes<T>(s, threads);
  }
  static std::size_t backward_bytes(const Sizes& s, int threads) {
    return causal_product_backward_bytes<T>(s, threads);
  }
  static void forward(const Sizes& s, const Arguments& a, ThreadTeam& team, void* space,
                      std::size_t bytes) {
    causal_product_forward(s, a, team, space, bytes);
  }
  static void backward(const Sizes& s, const Arguments& a, const Rows<const T>& d_out,
                       const Rows<T>& d_query, const Rows<T>& d_key, const Rows<T>& d_values,
                       ThreadTeam& team, void* space, std::size_t bytes) {
    causal_product_backward(s, a, {d_out, d_query, d_key, d_values}, team, space, bytes);
  }

  static std::vector<double> weights(const Sizes& sizes, const T* q, const T* k, std::int64_t t,
                                     const std::function<bool(std::int64_t)>& seen) {
    const auto phi = [&](const T* x, std::int64_t token, std::int64_t f) {
      const double value = widen(x[token * sizes.features + f]);
      if (sizes.feature == ProductFeature::identity) return value;
      return value > 0 ? value + 1 : std::exp(value);
    };
    std::vector<double> row(static_cast<std::size_t>(t + 1), 0.0);
    double sum = 0;
    for (std::int64_t s = 0; s <= t; ++s) {
      if (!seen(s)) continue;
      double& weight = row[static_cast<std::size_t>(s)];
      for (std::int64_t f = 0; f < sizes.features; ++f) weight += phi(q, t, f) * phi(k, s, f);
      for (std::int64_t i = s + 1; sizes.decays && i <= t; ++i) weight *= std::exp(log_decay_of(i));
      weight *= sizes.scale;
      sum += weight;
    }
    if (!sizes.normalised || sum + sizes.epsilon == 0) return row;
    for (double& weight : row) weight /= sum + sizes.epsilon;
    return row;
  }
};

inline CausalProductSizes linear() {
  CausalProductSizes sizes;
  sizes.feature = ProductFeature::elu_plus_one;
  sizes.normalised = true;
  sizes.epsilon = 1e-6;
  return sizes;
}

inline std::vector<CausalProductSizes> product_kinds() {
  CausalProductSizes plain_elu = linear();
  plain_elu.normalised = false;
  return {linear(), plain_elu, CausalProductSizes{}};
}

/// On CUDA for fp32 alone.
inline CausalProductSizes decaying() {
  CausalProductSizes sizes;
  sizes.decays = true;
  return sizes;
}

inline std::vector<CausalProductSizes> all_product_kinds() {
  std::vector<CausalProductSizes> kinds = product_kinds();
  kinds.push_back(decaying());
  kinds.back().scale = 0.375;
  return kinds;
}

template <class T>
struct Pool {
  using Sizes = PrefixPoolSizes;
  using Arguments = PrefixPoolArguments<T>;

  static void resize(Sizes& sizes, const Shape& s) {
    sizes.batch = s.batch;
    sizes.heads = s.heads;
    sizes.length = s.length;
    sizes.latents = s.latents;
    sizes.value_dim = s.value_dim;
  }
  static void set_inputs(Arguments& a, const Rows<const T>& query, const Rows<const T>& key,
                         const Rows<const T>& values) {
    a.query = query;
    a.scores = key;
    a.values = values;
  }
  static std::size_t forward_bytes(const Sizes& s, int threads) {
    return prefix_pool_forward_bytes<T>(s, threads);
  }
  static std::size_t backward_bytes(const Sizes& s, int threads) {
    return prefix_pool_backward_bytes<T>(s, threads);
  }
  static void forward(const Sizes& s, const Arguments& a, ThreadTeam& team, void* space,
                      std::size_t bytes) {
    prefix_pool_forward(s, a, team, space, bytes);
  }
  static void backward(const Sizes& s, const Arguments& a, const Rows<const T>& d_out,
                       const Rows<T>& d_query, const Rows<T>& d_key, const Rows<T>& d_values,
                       ThreadTeam& team, void* space, std::size_t bytes) {
    prefix_pool_backward(s, a, {d_out, d_query, d_key, d_values}, team, space, bytes);
  }

  /// A_{t,s} = sum_l p_{t,l} exp(k_{s,l} - z_{t,l}).
  static std::vector<double> weights(const Sizes& sizes, const T* q, const T* k, std::int64_t t,
                                     const std::function<bool(std::int64_t)>& seen) {
    constexpr double none = -std::numeric_limits<double>::infinity();
    const auto at = [&](const T* x, std::int64_t token, std::int64_t l) {
      return static_cast<double>(widen(x[token * sizes.latents + l]));
    };
    std::vector<double> z, p;
    for (std::int64_t l = 0; l < sizes.latents; ++l) {
      double most = none, sum = 0;
      for (std::int64_t s = 0; s <= t; ++s) {
        if (seen(s)) most = std::max(most, sizes.scale * at(k, s, l));
      }
      for (std::int64_t s = 0; s <= t; ++s) {
        if (seen(s)) sum += std::exp(sizes.scale * at(k, s, l) - most);
      }
      z.push_back(sum > 0 ? most + std::log(sum) : none);
      const bool logits = sizes.query != PoolQuery::weights;
      p.push_back(at(q, t, l) * (logits ? sizes.scale : 1));
      if (sizes.query == PoolQuery::logits_plus_z) p.back() += z.back();
    }
    if (sizes.query != PoolQuery::weights) {
      const double most = *std::max_element(p.begin(), p.end());
      double sum = 0;
      for (double& x : p) sum += x = std::exp(x - most);
      for (double& x : p) x /= sum;
    }
    std::vector<double> row(static_cast<std::size_t>(t + 1), 0.0);
    for (std::int64_t s = 0; s <= t; ++s) {
      for (std::int64_t l = 0; seen(s) && l < sizes.latents; ++l) {
        const auto i = static_cast<std::size_t>(l);
        if (z[i] == none) continue;  // it has seen nothing, and counts in the softmax alone
        row[static_cast<std::size_t>(s)] += p[i] * std::exp(sizes.scale * at(k, s, l) - z[i]);
      }
    }
    return row;
  }
};

constexpr PoolQuery pool_kinds[] = {PoolQuery::weights, PoolQuery::logits,
                                    PoolQuery::logits_plus_z};

inline PrefixPoolSizes of(PoolQuery kind, double scale = 1) {
  PrefixPoolSizes sizes;
  sizes.query = kind;
  sizes.scale = scale;
  return sizes;
}

/// One latent sees nothing, others only later tokens than the first, which others see: before the
/// first chunk's end, behind it, and at a hidden token.
template <class T>
void blind(Recurrent<Pool, T>& numbers) {
  const auto length = static_cast<std::size_t>(numbers.shape.length);
  const auto latents = static_cast<std::size_t>(numbers.shape.latents);
  const std::size_t first[] = {length, 9, 90, 3};
  for (std::size_t i = 0; i < numbers.key.size(); ++i) {
    const std::size_t l = i % latents, t = i / latents % length;
    if (l < 4 && t < first[l]) numbers.key[i] = stored<T>(-INFINITY);
  }
  for (std::size_t t = 0; !numbers.mask.empty() && t < 5; ++t) numbers.mask[t] = t == 1 ? 1 : 0;
}

}  // namespace attnbench::kernels::test
