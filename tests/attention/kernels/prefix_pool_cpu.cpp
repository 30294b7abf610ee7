#include "attention/kernels/prefix_pool.hpp"

#include <limits>

#include "attention/kernels/simd.hpp"
#include "tests/attention/kernels/recurrent_problem.hpp"

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

namespace {

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
      if (sizes.query == PoolQuery::logits_and_normaliser) p.back() += z.back();
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
        row[static_cast<std::size_t>(s)] += p[i] * std::exp(sizes.scale * at(k, s, l) - z[i]);
      }
    }
    return row;
  }
};

constexpr PoolQuery kinds[] = {PoolQuery::weights, PoolQuery::logits,
                               PoolQuery::logits_and_normaliser};

PrefixPoolSizes of(PoolQuery kind, double scale = 1) {
  PrefixPoolSizes sizes;
  sizes.query = kind;
  sizes.scale = scale;
  return sizes;
}

}  // namespace

TEMPLATE_TEST_CASE("kernels prefix pool: values and gradients at awkward sizes", "", float, double,
                   BFloat16) {
  for (const PoolQuery kind : kinds) {
    for (const std::int64_t length : {1, 2, 31, 33, 64, 131}) {
      compare<Pool, TestType>({length, 7, 43}, of(kind));
    }
    compare<Pool, TestType>({70, 1, 5}, of(kind));
    compare<Pool, TestType>({70, 70, 1}, of(kind, 0.4));
    compare<Pool, TestType>({70, 16, 130}, of(kind), 3);
  }
}

TEST_CASE("kernels prefix pool: gradients equal finite differences of the definition") {
  for (const PoolQuery kind : kinds) {
    check_slopes<Pool>({70, 5, 6}, of(kind));
    check_slopes<Pool>({41, 5, 6, 2, 2, 1, true}, of(kind, 0.7));
    check_slopes<Pool>({41, 3, 6, 1, 1, 30}, of(kind));
  }
}

TEST_CASE("kernels prefix pool: hidden tokens are as if they were not there") {
  for (const PoolQuery kind : kinds) {
    compare<Pool, float>({131, 20, 24, 2, 2, 1, true}, of(kind));
    Recurrent<Pool, double> problem({40, 6, 5, 2, 2, 1, true}, of(kind));
    std::fill_n(problem.mask.begin(), 40, 0);  // nothing of the first batch row is real
    const auto expected = problem.define();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t head = 0; head < 2; ++head) {
      std::fill_n(problem.key.begin() + head * 240, 240, nan);
      std::fill_n(problem.values.begin() + head * 200, 200, nan);
    }
    problem.forward(2);
    problem.backward(2);
    for (std::size_t i = 0; i < 400; ++i) REQUIRE(problem.out[i] == 0);
    for (std::size_t i = 0; i < 480; ++i) REQUIRE(problem.d_key[i] == 0);
    for (std::size_t i = 0; i < 400; ++i) REQUIRE(problem.d_values[i] == 0);
    for (std::size_t i = 400; i < 800; ++i) REQUIRE(problem.out[i] == Approx(expected[i]));
  }
}

TEST_CASE("kernels prefix pool: scores that rise without end stay right") {
  for (const PoolQuery kind : kinds) {
    for (const double slope : {30.0, -30.0, 2.0}) {
      CAPTURE(static_cast<int>(kind), slope);
      Recurrent<Pool, float> problem({97, 4, 8}, of(kind));
      for (std::size_t i = 0; i < problem.key.size(); ++i) {
        const auto t = static_cast<double>(i / 4 % 97);
        problem.key[i] += static_cast<float>(i % 3 == 0 ? slope * t : 0);
      }
      problem.key[40] = 1000;
      problem.forward(2);
      problem.backward(2);
      CHECK(relative_rms(problem.out, problem.define()) < 2e-4);
      auto exact = problem.in_double();
      exact.backward(1);
      CHECK(relative_rms(problem.d_values, exact.d_values) < 1e-3);
      for (const float x : problem.d_key) REQUIRE(std::isfinite(x));
      for (const float x : problem.d_query) REQUIRE(std::isfinite(x));
    }
    compare<Pool, double>({97, 4, 8, 2, 2, 15}, of(kind));
  }
}

TEMPLATE_TEST_CASE("kernels prefix pool: pieces from a carry give the whole", "", float, double) {
  using R = TestType;
  for (const PoolQuery kind : kinds) {
    for (const Shape& shape : {Shape{150, 7, 5}, Shape{150, 16, 32}}) {
      Recurrent<Pool, R> whole(shape, of(kind));
      whole.forward(1);
      const auto expected = whole.define();
      const std::int64_t heads = shape.batch * shape.heads;
      std::vector<R> maximum(static_cast<std::size_t>(heads * shape.latents),
                             -std::numeric_limits<R>::infinity());
      std::vector<R> normaliser(maximum.size(), R{0});
      std::vector<R> sum(maximum.size() * static_cast<std::size_t>(shape.value_dim), R{0});
      std::fill(whole.out.begin(), whole.out.end(), R{0});
      std::int64_t begin = 0;
      for (const std::int64_t count : {1, 1, 64, 3, 70, 11}) {
        auto sizes = whole.sizes;
        sizes.length = count;
        auto arguments = whole.arguments(begin);
        arguments.carry = {maximum.data(), normaliser.data(), sum.data()};
        Recurrent<Pool, R>::run(sizes, arguments, 6);  // more threads than heads
        begin += count;
      }
      CHECK(relative_rms(whole.out, expected) < RecurrentBars<R>::forward);
    }
  }
}

TEST_CASE("kernels prefix pool: the same bits for any number of threads, and every ISA is right") {
  for (const PoolQuery kind : kinds) {
    Recurrent<Pool, float> one({131, 20, 64, 1, 1}, of(kind));
    Recurrent<Pool, float> many = one;
    one.forward(1);
    many.forward(4);
    CHECK(one.out == many.out);
  }
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_isa(isa);
    for (const PoolQuery kind : kinds) {
      compare<Pool, float>({97, 20, 43}, of(kind));
      compare<Pool, double>({97, 20, 43}, of(kind));
    }
  }
}
