// The tiled softmax against its definition in double: sizes, bands, masks, biases by distance,
// queries that see nothing, numbers that are none.
#include "attention/kernels/softmax.hpp"

#include <cmath>
#include <limits>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/softmax_problem.hpp"

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

namespace {

template <class T>
void check(Problem<T>& problem, const Expected& expected, int threads) {
  const SoftmaxSizes& sizes = problem.sizes;
  problem.forward(threads);
  problem.backward(threads);
  CAPTURE(static_cast<int>(best_isa()));
  CHECK(relative_rms(problem.out, expected.out) < Bars<T>::forward);
  // One visible key leaves no gradient for q and k: what is left of it is rounding.
  if (sizes.left + sizes.right > 0 && sizes.key_length > 1) {
    CHECK(relative_rms(problem.dq, expected.dq) < Bars<T>::backward);
    CHECK(relative_rms(problem.dk, expected.dk) < Bars<T>::backward);
    if (sizes.bias_reach > 0) {
      CHECK(relative_rms(problem.d_bias, expected.d_bias) < Bars<T>::backward);
    }
  }
  CHECK(relative_rms(problem.dv, expected.dv) < Bars<T>::backward);
}

/// By the widest instruction set that is allowed; where that is AMX, bfloat16 without it, too.
template <class T>
void compare(const SoftmaxSizes& sizes, double spread = 1.0, bool masked = false, int threads = 2) {
  Problem<T> problem(sizes, spread, masked);
  const Expected expected = define(problem);
  CAPTURE(sizes.length, sizes.key_length, sizes.head_dim, sizes.value_dim, sizes.left, sizes.right,
          sizes.offset, sizes.bias_reach, spread, masked, threads);
  check(problem, expected, threads);
  if (std::is_same_v<T, BFloat16> && best_isa() == Isa::amx) {
    limit_isa(Isa::avx512_bf16);
    check(problem, expected, threads);
    limit_isa(Isa::amx);
  }
}

struct Band {
  std::int64_t left, right, reach;
};

SoftmaxSizes biased(std::int64_t length, std::int64_t offset, const Band& band) {
  SoftmaxSizes sizes;
  sizes.batch = 2;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  sizes.length = length;
  sizes.key_length = length + offset;
  sizes.head_dim = 11;
  sizes.value_dim = 5;
  sizes.left = band.left;
  sizes.right = band.right;
  sizes.offset = offset;
  sizes.bias_reach = band.reach;
  sizes.scale = 0.3;
  return sizes;
}

}  // namespace

TEMPLATE_TEST_CASE("kernels softmax: values and gradients at awkward sizes", "", float, double,
                   BFloat16) {
  for (const std::int64_t length : {1, 2, 3, 63, 64, 65, 257}) {
    for (const std::int64_t dim : {1, 3, 43, 64, 128}) {
      if (length == 257 && dim == 128) continue;
      compare<TestType>(square(length, dim, length % 2 == 1));
    }
  }
}

TEMPLATE_TEST_CASE("kernels softmax: on both sides of every tile's edge", "", float, BFloat16) {
  for (const std::int64_t length : {5, 6, 7, 8, 9, 16, 17, 47, 48, 49, 95, 96, 97, 145, 193}) {
    compare<TestType>(square(length, 16, length % 2 == 0));
    SoftmaxSizes band = square(length, 20, false);
    band.left = 11;
    band.right = 3;
    compare<TestType>(band, 1.0, length % 3 == 0);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: windows, masks, grouped heads, unequal lengths", "", float,
                   double, BFloat16) {
  SoftmaxSizes sizes = square(131, 24, true);
  sizes.batch = 2;
  sizes.heads = 4;
  sizes.value_dim = 40;
  for (const std::int64_t left : {0, 1, 16, 130, 500}) {
    for (const std::int64_t right : {0, 7, 200}) {
      sizes.left = left;
      sizes.right = right;
      compare<TestType>(sizes);
      compare<TestType>(sizes, 1.0, true);
    }
  }
  sizes.left = SoftmaxSizes::far;
  sizes.right = 0;
  for (const std::int64_t keys : {1, 60, 131, 300, 700}) {
    sizes.key_length = keys;
    sizes.offset = keys - sizes.length;
    compare<TestType>(sizes);
    compare<TestType>(sizes, 1.0, true, 1);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: narrow bands in one tile of keys, in two, and wider ones", "",
                   float, double) {
  SoftmaxSizes sizes = square(450, 16, true);
  for (const std::int64_t left : {127, 144, 145, 240, 336, 337}) {
    for (const std::int64_t right : {0, 1}) {
      sizes.left = left - right;
      sizes.right = right;
      compare<TestType>(sizes);
    }
    compare<TestType>(sizes, 1.0, true);
  }
  sizes.left = 9;  // queries before the first key and behind the last one
  sizes.key_length = 70;
  for (const std::int64_t offset : {-100, 0, 20}) {
    sizes.offset = offset;
    compare<TestType>(sizes);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: queries that end before their keys do", "", float, double,
                   BFloat16) {
  for (const std::int64_t length : {33, 90}) {
    SoftmaxSizes sizes = square(length, 24, true);
    sizes.key_length = 300;
    for (const std::int64_t offset : {0, 10, 75}) {
      sizes.offset = offset;
      sizes.left = SoftmaxSizes::far;
      compare<TestType>(sizes);
      sizes.left = 20;
      compare<TestType>(sizes, 1.0, true);
    }
  }
}

TEMPLATE_TEST_CASE("kernels softmax: a few queries at the end of many keys", "", float, double,
                   BFloat16) {
  for (const std::int64_t length : {1, 4, 5}) {
    SoftmaxSizes sizes = square(length, 43, true);
    sizes.heads = 4;
    sizes.key_length = 300;
    sizes.offset = 300 - length;
    compare<TestType>(sizes);
    compare<TestType>(sizes, 1.0, true);
    sizes.left = 70;
    compare<TestType>(sizes, 1.0, true, 1);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: keys split among workers", "", float, double, BFloat16) {
  for (const std::int64_t length : {1, 7, 40}) {
    SoftmaxSizes sizes = square(length, 24, true);
    sizes.key_length = 2500;
    sizes.offset = sizes.key_length - length;
    compare<TestType>(sizes);
    compare<TestType>(sizes, 1.0, true);
    sizes.left = 1300;
    compare<TestType>(sizes, 1.0, true, 3);
  }
}

TEST_CASE("kernels softmax: every instruction set gives the same numbers") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    limit_isa(isa);
    CAPTURE(static_cast<int>(best_isa()));
    compare<float>(square(2, 43, true));
    compare<float>(square(97, 43, true));
    compare<double>(square(97, 43, false));
    compare<BFloat16>(square(97, 43, true));
    compare<BFloat16>(square(150, 64, false), 1.0, true);
    SoftmaxSizes band = square(150, 43, true);
    band.left = 21;
    compare<float>(band);
    band.right = 5;
    compare<float>(band, 1.0, true);
    compare<double>(band);
  }
}

TEMPLATE_TEST_CASE("kernels softmax: a negative scale", "", float, BFloat16) {
  SoftmaxSizes sizes = square(70, 40, true);
  sizes.scale = -0.4;
  compare<TestType>(sizes);
}

TEST_CASE("kernels softmax: sharp logits stay finite and right") {
  compare<double>(square(130, 16, true), 8.0);
  Problem<float> problem(square(130, 16, true), 15.0);
  problem.forward(2);
  problem.backward(2);
  const Expected expected = define(problem);
  CHECK(relative_rms(problem.out, expected.out) < 1e-4);
  for (const float x : problem.dq) REQUIRE(std::isfinite(x));
}

TEST_CASE("kernels softmax: a bias by distance, its gradient too") {
  for (const Band& band :
       {Band{6, 4, 6}, Band{0, 0, 0}, Band{127, 0, 127}, Band{300, 300, 300}, Band{63, 64, 90}}) {
    for (const std::int64_t length : {3, 64, 67, 301}) {
      for (const std::int64_t offset : {0, 5}) {
        const SoftmaxSizes sizes = biased(length, offset, band);
        for (const bool masked : {false, true}) {
          compare<float>(sizes, 1, masked, 3);
          compare<double>(sizes, 1, masked, 3);
        }
      }
    }
    compare<BFloat16>(biased(301, 0, band), 1, true);
  }
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    compare<float>(biased(150, 2, {40, 7, 40}));
    compare<double>(biased(150, 2, {40, 7, 40}));
  }
}

TEST_CASE("kernels softmax: the biases' gradient is the same bits every time") {
  Problem<float> problem(biased(500, 0, {30, 30, 30}));
  problem.forward(3);
  problem.backward(3);
  const auto first = problem.d_bias;
  problem.backward(3);
  CHECK(first == problem.d_bias);
}

TEST_CASE("kernels softmax: one part of the keys may hold all the weight, or none that is seen") {
  SoftmaxSizes sizes = square(3, 8, false);
  sizes.key_length = 2500;
  Problem<float> problem(sizes, 1.0, true);
  std::fill(problem.mask.begin() + 600, problem.mask.end() - 600, std::uint8_t{0});
  for (std::size_t i = 0; i < 8; ++i) problem.k[100 * 8 + i] = 60 * problem.q[i];
  problem.forward(2);
  CHECK(relative_rms(problem.out, define(problem).out) < 3e-6);
  std::fill(problem.mask.begin(), problem.mask.end(), std::uint8_t{0});
  problem.forward(2);
  for (const float x : problem.out) REQUIRE(x == 0);
  for (const float x : problem.lse) REQUIRE(x == std::numeric_limits<float>::infinity());
}

TEST_CASE("kernels softmax: a NaN in a key reaches the queries that see it, and no other") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_isa(isa);
    CAPTURE(static_cast<int>(best_isa()));
    SoftmaxSizes band = square(200, 32, true);
    band.left = 25;
    Problem<float> problem(band);
    problem.forward(2);
    const auto out = problem.out;
    problem.k[100 * 32 + 7] = std::numeric_limits<float>::quiet_NaN();
    problem.forward(2);
    bool right = true;
    for (std::size_t i = 0; i < 200 * 32; ++i) {
      const bool sees = i / 32 >= 100 && i / 32 <= 125;
      right = right && (sees ? std::isnan(problem.out[i]) : problem.out[i] == out[i]);
    }
    CHECK(right);
  }
  limit_isa(Isa::amx);
}

TEST_CASE("kernels softmax: a query that sees no key has output 0, gradient 0 and lse +infinity") {
  SoftmaxSizes sizes = square(70, 8, true);
  sizes.key_length = 10;
  sizes.offset = -60;
  Problem<float> problem(sizes);
  problem.forward(1);
  problem.backward(1);
  for (std::size_t i = 0; i < 60 * 8; ++i) {
    REQUIRE(problem.out[i] == 0);
    REQUIRE(problem.dq[i] == 0);
  }
  CHECK(problem.lse[0] == std::numeric_limits<float>::infinity());
  CHECK(std::isfinite(problem.lse[60]));
}
