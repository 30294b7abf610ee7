#include "attention/kernels/causal_product.hpp"

#include <limits>

#include "attention/kernels/simd.hpp"
#include "tests/attention/kernels/recurrent_problem.hpp"

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

namespace {

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
      sum += weight;
    }
    if (!sizes.normalised || sum + sizes.epsilon == 0) return row;
    for (double& weight : row) weight /= sum + sizes.epsilon;
    return row;
  }
};

CausalProductSizes linear() {
  CausalProductSizes sizes;
  sizes.feature = ProductFeature::elu_plus_one;
  sizes.normalised = true;
  sizes.epsilon = 1e-6;
  return sizes;
}

std::vector<CausalProductSizes> kinds() {
  CausalProductSizes plain_elu = linear();
  plain_elu.normalised = false;
  return {linear(), plain_elu, CausalProductSizes{}};
}

}  // namespace

TEMPLATE_TEST_CASE("kernels causal product: values and gradients at awkward sizes", "", float,
                   double, BFloat16) {
  for (const CausalProductSizes& kind : kinds()) {
    for (const std::int64_t length : {1, 2, 31, 33, 64, 131}) {
      compare<Product, TestType>({length, 7, 43}, kind);
    }
    compare<Product, TestType>({70, 1, 5}, kind);
    compare<Product, TestType>({70, 70, 1}, kind);
    compare<Product, TestType>({70, 16, 130}, kind, 3);
  }
}

TEST_CASE("kernels causal product: gradients equal finite differences of the definition") {
  for (const CausalProductSizes& kind : kinds()) {
    check_slopes<Product>({70, 5, 6}, kind);
    check_slopes<Product>({41, 5, 6, 2, 2, 1, true}, kind);
  }
}

TEST_CASE("kernels causal product: hidden tokens are as if they were not there") {
  for (const CausalProductSizes& kind : kinds()) {
    compare<Product, float>({131, 20, 24, 2, 2, 1, true}, kind);
    Recurrent<Product, double> problem({40, 6, 5, 2, 2, 1, true}, kind);
    std::fill_n(problem.mask.begin(), 40, 0);  // nothing of the first batch row is real
    const auto expected = problem.define();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::fill_n(problem.key.begin(), 480, nan);
    std::fill_n(problem.values.begin(), 400, nan);
    problem.forward(2);
    problem.backward(2);
    for (std::size_t i = 0; i < 400; ++i) REQUIRE(problem.out[i] == 0);
    for (std::size_t i = 0; i < 480; ++i) REQUIRE(problem.d_key[i] == 0);
    for (std::size_t i = 0; i < 400; ++i) REQUIRE(problem.d_values[i] == 0);
    for (std::size_t i = 400; i < 800; ++i) REQUIRE(problem.out[i] == Approx(expected[i]));
  }
}

TEMPLATE_TEST_CASE("kernels causal product: pieces from a memory give the whole", "", float,
                   double) {
  using R = TestType;
  for (const CausalProductSizes& kind : kinds()) {
    for (const Shape& shape : {Shape{150, 7, 5}, Shape{150, 16, 32}}) {
      Recurrent<Product, R> whole(shape, kind);
      const auto expected = whole.define();
      std::vector<R> total(static_cast<std::size_t>(shape.batch * shape.heads * shape.latents),
                           R{0});
      std::vector<R> memory(total.size() * static_cast<std::size_t>(shape.value_dim), R{0});
      std::int64_t begin = 0;
      for (const std::int64_t count : {1, 1, 64, 3, 70, 11}) {
        auto sizes = whole.sizes;
        sizes.length = count;
        auto arguments = whole.arguments(begin);
        arguments.memory = memory.data();
        if (kind.normalised) arguments.total = total.data();
        Recurrent<Product, R>::run(sizes, arguments, 6);  // more threads than heads
        begin += count;
      }
      CHECK(relative_rms(whole.out, expected) < RecurrentBars<R>::forward);
    }
  }
}

TEST_CASE("kernels causal product: same bits for any number of threads, every ISA right") {
  Recurrent<Product, float> one({131, 20, 64, 1, 1}, linear());
  Recurrent<Product, float> many = one;
  one.forward(1);
  many.forward(4);
  CHECK(one.out == many.out);
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_isa(isa);
    for (const CausalProductSizes& kind : kinds()) {
      compare<Product, float>({97, 20, 43}, kind);
      compare<Product, double>({97, 20, 43}, kind);
    }
  }
}

TEST_CASE("kernels causal product: features of far negative and large numbers stay finite") {
  Recurrent<Product, float> problem({70, 8, 5, 1, 1, 40}, linear());
  problem.forward(2);
  problem.backward(2);
  CHECK(relative_rms(problem.out, problem.define()) < 1e-5);
  for (const float x : problem.d_key) REQUIRE(std::isfinite(x));
}
