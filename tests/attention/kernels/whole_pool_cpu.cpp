// The whole pool on the CPU against its definition in double: values, gradients, masks, extremes.
#include "attention/kernels/whole_pool.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "attention/kernels/simd.hpp"
#include "tests/attention/kernels/arrays.hpp"
#include "tests/attention/kernels/closeness.hpp"

namespace attnbench::kernels::test {
namespace {

constexpr PoolQuery kinds[] = {PoolQuery::weights, PoolQuery::logits,
                               PoolQuery::logits_and_normaliser};

WholePoolSizes sized(PoolQuery kind, std::int64_t length, std::int64_t keys, std::int64_t latents,
                     std::int64_t dim) {
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
  PrefixPoolArguments<T> arguments() {
    PrefixPoolArguments<T> a;
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
        for (std::int64_t s = 0; s < sizes.key_length; ++s) {
          if (seen(s)) sum += std::exp(sizes.scale * widen(k[s * latents + l]) - most);
        }
        z.push_back(sum > 0 ? most + std::log(sum) : none);
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
          if (sizes.query == PoolQuery::logits_and_normaliser) {
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

template <class T>
void compare(const WholePoolSizes& sizes, double spread = 1, bool masked = false) {
  CAPTURE(static_cast<int>(sizes.query), sizes.length, sizes.key_length, sizes.latents,
          sizes.value_dim, spread, masked);
  WholePool<T> problem(sizes, spread, masked);
  problem.forward(3);
  CHECK(relative_rms(problem.out, problem.define()) < Bars<T>::forward);
  problem.backward(3);
  auto exact = problem.widened();
  exact.backward(1);
  const auto& large = exact.d_values;
  CHECK(gradient_error(problem.d_query, exact.d_query, large) < Bars<T>::backward);
  CHECK(gradient_error(problem.d_scores, exact.d_scores, large) < Bars<T>::backward);
  CHECK(relative_rms(problem.d_values, exact.d_values) < Bars<T>::backward);
}

/// Derivatives along random directions against central differences of the definition.
void check_slopes(const WholePoolSizes& sizes, bool masked) {
  CAPTURE(static_cast<int>(sizes.query), sizes.length, sizes.key_length, masked);
  WholePool<double> problem(sizes, 1, masked);
  problem.backward(2);
  std::mt19937 engine(3);
  const auto loss = [&] { return inner(problem.define(), problem.d_out); };
  check_slope(engine, loss, problem.query, problem.d_query);
  check_slope(engine, loss, problem.scores, problem.d_scores);
  check_slope(engine, loss, problem.values, problem.d_values);
}

}  // namespace

TEMPLATE_TEST_CASE("kernels whole pool: every kind at odd sizes", "", float, double, BFloat16) {
  for (const PoolQuery kind : kinds) {
    for (const bool masked : {false, true}) {
      for (const auto& [length, keys] :
           {std::pair{1, 1}, {3, 70}, {65, 64}, {200, 129}, {64, 3}, {130, 1200}}) {
        compare<TestType>(sized(kind, length, keys, 7, 43), 1, masked);
      }
      compare<TestType>(sized(kind, 40, 50, 1, 1), 1, masked);
      compare<TestType>(sized(kind, 40, 50, 33, 16), 3, masked);
    }
  }
}

TEST_CASE("kernels whole pool: gradients are slopes of the definition") {
  for (const PoolQuery kind : kinds) {
    for (const bool masked : {false, true}) {
      check_slopes(sized(kind, 23, 31, 5, 4), masked);
      check_slopes(sized(kind, 70, 150, 3, 2), masked);
    }
  }
}

TEST_CASE("kernels whole pool: hidden tokens may hold anything, and a hidden row gives 0") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const PoolQuery kind : kinds) {
    WholePool<double> problem(sized(kind, 20, 40, 6, 5));
    problem.mask.assign(80, 1);
    std::fill_n(problem.mask.begin(), 40, std::uint8_t{0});
    const auto expected = problem.define();
    for (std::size_t i = 0; i < problem.scores.size() / 2; ++i) problem.scores[i] = nan;
    for (std::size_t i = 0; i < problem.values.size() / 2; ++i) problem.values[i] = nan;
    problem.forward(2);
    problem.backward(2);
    CHECK(relative_rms(problem.out, expected) < 1e-13);
    for (std::size_t i = 0; i < problem.out.size() / 2; ++i) REQUIRE(problem.out[i] == 0);
    for (std::size_t i = 0; i < problem.d_scores.size() / 2; ++i) {
      REQUIRE(problem.d_scores[i] == 0);
    }
    for (std::size_t i = 0; i < problem.d_values.size() / 2; ++i) {
      REQUIRE(problem.d_values[i] == 0);
    }
    for (const double each : problem.d_query) REQUIRE(std::isfinite(each));
  }
}

TEST_CASE("kernels whole pool: scores that rise by 30 a token stay right") {
  for (const PoolQuery kind : kinds) {
    for (const double slope : {30.0, -30.0}) {
      CAPTURE(static_cast<int>(kind), slope);
      WholePool<float> problem(sized(kind, 50, 97, 4, 8));
      for (std::size_t i = 0; i < problem.scores.size(); ++i) {
        problem.scores[i] += static_cast<float>(i % 3 == 0 ? slope * double(i / 4 % 97) : 0);
      }
      problem.scores[40] = 1000;
      problem.forward(2);
      problem.backward(2);
      CHECK(relative_rms(problem.out, problem.define()) < 2e-4);
      for (const float each : problem.d_scores) REQUIRE(std::isfinite(each));
      for (const float each : problem.d_query) REQUIRE(std::isfinite(each));
    }
    compare<double>(sized(kind, 50, 97, 4, 8), 15);
  }
}

TEST_CASE("kernels whole pool: the same bits for any number of threads, and every ISA is right") {
  for (const PoolQuery kind : kinds) {
    WholePool<float> one(sized(kind, 700, 900, 20, 24));
    WholePool<float> many = one;
    one.forward(1);
    many.forward(4);
    CHECK(one.out == many.out);
    one.backward(1);
    many.backward(4);
    CHECK(one.d_query == many.d_query);
    CHECK(one.d_scores == many.d_scores);
    CHECK(one.d_values == many.d_values);
  }
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    for (const PoolQuery kind : kinds) {
      compare<float>(sized(kind, 97, 70, 20, 43));
      compare<double>(sized(kind, 97, 70, 20, 43));
    }
  }
}

}  // namespace attnbench::kernels::test
