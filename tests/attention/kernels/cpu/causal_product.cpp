#include <limits>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/recurrent_families.hpp"

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

TEMPLATE_TEST_CASE("kernels causal product: values and gradients at awkward sizes", "", float,
                   double, BFloat16) {
  for (const CausalProductSizes& kind : all_product_kinds()) {
    for (const std::int64_t length : {1, 2, 31, 47, 48, 49, 149}) {
      compare<Product, TestType>({length, 7, 43}, kind);
    }
    compare<Product, TestType>({70, 1, 5}, kind);
    compare<Product, TestType>({70, 70, 1}, kind);
    compare<Product, TestType>({70, 16, 130}, kind, 3);
  }
}

TEST_CASE("kernels causal product: gradients equal finite differences of the definition") {
  for (const CausalProductSizes& kind : all_product_kinds()) {
    check_grads<Product>({70, 5, 6}, kind);
    check_grads<Product>({41, 5, 6, 2, 2, 1, true}, kind);
  }
}

TEST_CASE("kernels causal product: gradients of large memories") {
  // The other features bend at 0, where differences of so many numbers are off by 2e-7.
  check_grads<Product>({70, 250, 70, 1, 1}, CausalProductSizes{});
  for (const CausalProductSizes& kind : all_product_kinds()) {
    check_columns<Product>({101, 130, 130, 1, 2, 1, true}, kind, 2);
    compare<Product, float>({97, 250, 70, 1, 2}, kind);
  }
}

TEST_CASE("kernels causal product: hidden tokens are as if they were not there") {
  for (const CausalProductSizes& kind : all_product_kinds()) {
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
  for (const CausalProductSizes& kind : all_product_kinds()) {
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
      CHECK(relative_rms(whole.out, expected) < Bars<R>::forward);
    }
  }
}

TEST_CASE("kernels causal product: same bits for any number of threads, every ISA right") {
  Recurrent<Product, float> one({131, 20, 64, 1, 1}, linear());
  Recurrent<Product, float> many = one;
  one.forward(1);
  many.forward(4);
  CHECK(one.out == many.out);
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    for (const CausalProductSizes& kind : all_product_kinds()) {
      compare<Product, float>({97, 20, 43}, kind);
      compare<Product, double>({97, 20, 43}, kind);
    }
  }
}

TEST_CASE("kernels causal product: rows that lie ready give the same bits as copies") {
  for (const CausalProductSizes& kind : all_product_kinds()) {
    check_lying<Product>({131, 20, 64}, kind, 2);
    check_lying<Product>({97, 70, 64, 1, 1}, kind, 2);  // columns of a head apart
    check_lying<Product>({49, 7, 32, 2, 2, 1, true}, kind, 1);
  }
}

TEST_CASE("kernels causal product: features of far negative and large numbers stay finite") {
  Recurrent<Product, float> problem({70, 8, 5, 1, 1, 40}, linear());
  problem.forward(2);
  problem.backward(2);
  CHECK(relative_rms(problem.out, problem.define()) < 1e-5);
  for (const float x : problem.d_key) REQUIRE(std::isfinite(x));
}

TEST_CASE("kernels causal product: the features of a lone head are shared out among the threads") {
  for (const CausalProductSizes& kind : all_product_kinds()) {
    compare<Product, float>({131, 70, 43, 1, 1}, kind, 5);
    compare<Product, double>({131, 20, 24, 1, 1, 1, true}, kind, 3);
    compare<Product, BFloat16>({70, 40, 16, 1, 1}, kind, 2);
    check_grads<Product>({41, 20, 6, 1, 1, 1, true}, kind);
  }
}

TEST_CASE("kernels causal product: what a decay of minus infinity forgets is not seen") {
  Recurrent<Product, float> problem({120, 9, 33, 1, 1}, decaying());
  problem.forward(2);
  const std::vector<float> before = problem.out;
  std::fill_n(problem.values.begin(), 90 * 33, 1e15F);  // of the tokens before the 90th
  problem.forward(2);
  CHECK(std::equal(before.begin() + 90 * 33, before.end(), problem.out.begin() + 90 * 33));
  CHECK_FALSE(std::equal(before.begin(), before.begin() + 90 * 33, problem.out.begin()));
}

TEST_CASE("kernels causal product: numbers far from 1 keep their digits under strong decays") {
  for (const float size : {1e-9F, 1e9F}) {
    Recurrent<Product, float> problem({100, 8, 20, 1, 1}, decaying());
    for (float& x : problem.key) x *= size;
    auto exact = problem.widened();
    problem.forward(2);
    problem.backward(2);
    exact.forward(1);
    exact.backward(1);
    CHECK(relative_rms(problem.out, exact.define()) < Bars<float>::forward);
    CHECK(relative_rms(problem.d_query, exact.d_query) < Bars<float>::backward);
    CHECK(relative_rms(problem.d_values, exact.d_values) < Bars<float>::backward);
  }
}
