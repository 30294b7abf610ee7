// The whole pool as tests see it: a problem with its arrays, and its definition in double.
#pragma once

#include <algorithm>
#include <limits>
#include <random>

#include "attention/kernels/whole_pool.hpp"
#include "tests/attention/kernels/arrays.hpp"
#include "tests/attention/kernels/closeness.hpp"

namespace attnbench::kernels::test {

/// Two batch rows of two heads.
inline WholePoolSizes sized(PoolQuery kind, std::int64_t length, std::int64_t keys,
                            std::int64_t latents, std::int64_t dim) {
  WholePoolSizes sizes;
  sizes.batch = sizes.heads = 2;
  sizes.length = length;
  sizes.key_length = keys;
  sizes.latents = latents;
  sizes.value_dim = dim;
  sizes.query = kind;
  sizes.scale = 0.8;
  return sizes;
}

template <class T>
struct WholePool {
  WholePoolSizes sizes;
  std::vector<T> query, scores, values, d_out, out, d_query, d_scores, d_values;
  std::vector<std::uint8_t> mask;

  explicit WholePool(const WholePoolSizes& s, double spread = 1, bool masked = false) : sizes(s) {
    std::mt19937 engine(23);
    const std::int64_t heads = s.batch * s.heads;
    query = drawn<T>(engine, heads * s.length * s.latents, spread);
    scores = drawn<T>(engine, heads * s.key_length * s.latents, spread);
    values = drawn<T>(engine, heads * s.key_length * s.value_dim, 1);
    d_out = drawn<T>(engine, heads * s.length * s.value_dim, 1);
    out = d_out;
    d_query = query;
    d_scores = scores;
    d_values = values;
    if (masked) mask = drawn_mask(engine, s.batch * s.key_length);
  }
  WholePool<double> widened() const {
    WholePool<double> copy(sizes);
    copy.query = in_double(query);
    copy.scores = in_double(scores);
    copy.values = in_double(values);
    copy.d_out = in_double(d_out);
    copy.mask = mask;
    return copy;
  }
  template <class U>
  Rows<U> rows(std::vector<T>& x, std::int64_t length, std::int64_t width) const {
    return rows_of<U>(x, sizes.heads, length, width);
  }
  WholePoolArguments<T> arguments() {
    WholePoolArguments<T> a;
    a.query = rows<const T>(query, sizes.length, sizes.latents);
    a.scores = rows<const T>(scores, sizes.key_length, sizes.latents);
    a.values = rows<const T>(values, sizes.key_length, sizes.value_dim);
    a.out = rows<T>(out, sizes.length, sizes.value_dim);
    if (!mask.empty()) a.key_mask = mask.data();
    a.mask_stride = sizes.key_length;
    return a;
  }
  void forward(int threads) {
    on_workspace(threads, whole_pool_forward_bytes<T>(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   whole_pool_forward(sizes, arguments(), team, space, bytes);
                 });
  }
  void backward(int threads) {
    const PrefixPoolGradients<T> gradients{rows<const T>(d_out, sizes.length, sizes.value_dim),
                                           rows<T>(d_query, sizes.length, sizes.latents),
                                           rows<T>(d_scores, sizes.key_length, sizes.latents),
                                           rows<T>(d_values, sizes.key_length, sizes.value_dim)};
    on_workspace(threads, whole_pool_backward_bytes<T>(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   whole_pool_backward(sizes, arguments(), gradients, team, space, bytes);
                 });
  }

  /// y by definition.
  std::vector<double> define() const {
    constexpr double none = -std::numeric_limits<double>::infinity();
    const auto latents = sizes.latents, dim = sizes.value_dim;
    std::vector<double> y(out.size(), 0.0);
    for (std::int64_t head = 0; head < sizes.batch * sizes.heads; ++head) {
      const auto seen = [&](std::int64_t s) {
        const std::int64_t place = head / sizes.heads * sizes.key_length + s;
        return mask.empty() || mask[static_cast<std::size_t>(place)] != 0;
      };
      const T* k = scores.data() + head * sizes.key_length * latents;
      const T* v = values.data() + head * sizes.key_length * dim;
      std::vector<double> z, means(static_cast<std::size_t>(latents * dim), 0.0);
      for (std::int64_t l = 0; l < latents; ++l) {
        double most = none, sum = 0;
        for (std::int64_t s = 0; s < sizes.key_length; ++s) {
          if (seen(s)) most = std::max(most, sizes.scale * widen(k[s * latents + l]));
        }
        if (most == none) {  // hidden, or of scores that hide their tokens: weighs nothing
          z.push_back(none);
          continue;
        }
        for (std::int64_t s = 0; s < sizes.key_length; ++s) {
          if (seen(s)) sum += std::exp(sizes.scale * widen(k[s * latents + l]) - most);
        }
        z.push_back(most + std::log(sum));
        for (std::int64_t s = 0; s < sizes.key_length; ++s) {
          if (!seen(s)) continue;
          const double w = std::exp(sizes.scale * widen(k[s * latents + l]) - z.back());
          for (std::int64_t d = 0; d < dim; ++d) {
            means[static_cast<std::size_t>(l * dim + d)] += w * widen(v[s * dim + d]);
          }
        }
      }
      for (std::int64_t t = 0; t < sizes.length; ++t) {
        const T* q = query.data() + (head * sizes.length + t) * latents;
        std::vector<double> p;
        double most = none;
        for (std::int64_t l = 0; l < latents; ++l) {
          const bool logits = sizes.query != PoolQuery::weights;
          p.push_back(widen(q[l]) * (logits ? sizes.scale : 1));
          if (sizes.query == PoolQuery::logits_plus_z) {
            p.back() += z[static_cast<std::size_t>(l)];
          }
          most = std::max(most, p.back());
        }
        if (sizes.query != PoolQuery::weights) {
          double sum = 0;
          for (double& each : p) sum += each = most == none ? 0 : std::exp(each - most);
          for (double& each : p) each /= sum > 0 ? sum : 1;
        }
        double* to = y.data() + (head * sizes.length + t) * dim;
        for (std::int64_t i = 0; i < latents * dim; ++i) {
          to[i % dim] += p[static_cast<std::size_t>(i / dim)] * means[static_cast<std::size_t>(i)];
        }
      }
    }
    return y;
  }
};

/// Tokens and directions whose products are the logits, and the same logits in double.
template <class T>
struct Directed {
  WholePool<T> given;
  std::vector<Compute<T>> directions;
  std::int64_t dim;

  Directed(WholePoolSizes sizes, std::int64_t width, bool half_square, bool masked)
      : given(sizes, 1, masked), dim(width) {
    std::mt19937 engine(5);
    const std::int64_t heads = sizes.batch * sizes.heads;
    given.sizes.directions = {dim, half_square};
    given.query = drawn<T>(engine, heads * sizes.length * dim, 1);
    given.scores = drawn<T>(engine, heads * sizes.key_length * dim, 1);
    directions = drawn<Compute<T>>(engine, sizes.heads * sizes.latents * dim, 1);
  }
  void forward(int threads) {
    auto& sizes = given.sizes;
    auto arguments = given.arguments();
    arguments.query = given.template rows<const T>(given.query, sizes.length, dim);
    arguments.scores = given.template rows<const T>(given.scores, sizes.key_length, dim);
    arguments.directions = rows_of<const Compute<T>>(directions, sizes.heads, sizes.latents, dim);
    on_workspace(threads, whole_pool_forward_bytes<T>(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   whole_pool_forward(sizes, arguments, team, space, bytes);
                 });
  }
  std::vector<double> define() const {
    const auto& sizes = given.sizes;
    WholePool<double> logits = given.widened();
    logits.sizes.scale = 1;
    const auto made = [&](const std::vector<T>& tokens, std::int64_t length, bool less) {
      std::vector<double> to;
      for (std::int64_t row = 0; row < sizes.batch * sizes.heads * length; ++row) {
        const T* x = tokens.data() + row * dim;
        double square = 0;
        for (std::int64_t d = 0; d < dim; ++d) square += double{widen(x[d])} * double{widen(x[d])};
        for (std::int64_t l = 0; l < sizes.latents; ++l) {
          const auto* w =
              directions.data() + (row / length % sizes.heads * sizes.latents + l) * dim;
          double product = 0;
          for (std::int64_t d = 0; d < dim; ++d) product += double{widen(x[d])} * double{w[d]};
          to.push_back(sizes.scale * product - (less ? sizes.scale * sizes.scale * square / 2 : 0));
        }
      }
      return to;
    };
    logits.query = made(given.query, sizes.length, false);
    logits.scores = made(given.scores, sizes.key_length, sizes.directions.half_square);
    return logits.define();
  }
};

}  // namespace attnbench::kernels::test
