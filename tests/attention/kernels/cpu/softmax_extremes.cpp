// Queries that see nothing, numbers that are none, and scores that leave one key all the weight.
#include <cmath>
#include <limits>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/softmax_problem.hpp"

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

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

TEST_CASE("kernels softmax: ramps of 30 a token") {
  for (const double grad : {-30.0, 30.0}) {
    SoftmaxSizes sizes = square(150, 8, true);
    sizes.scale = 1;
    Problem<float> problem(sizes);
    for (std::int64_t head = 0; head < 2; ++head) {
      for (std::int64_t t = 0; t < sizes.length; ++t) {
        const auto at = static_cast<std::size_t>((head * sizes.length + t) * 8);
        std::fill_n(problem.q.begin() + static_cast<std::ptrdiff_t>(at), 8, 0.0F);
        std::fill_n(problem.k.begin() + static_cast<std::ptrdiff_t>(at), 8, 0.0F);
        problem.q[at] = 1;
        problem.k[at] = static_cast<float>(grad * static_cast<double>(t));
      }
    }
    problem.forward(2);
    problem.backward(2);
    const Expected expected = define(problem);
    CHECK(relative_rms(problem.out, expected.out) < 3e-6);
    CHECK(relative_rms(problem.dv, expected.dv) < 1e-5);
    for (const float x : problem.dq) REQUIRE(std::isfinite(x));
    for (const float x : problem.dk) REQUIRE(std::isfinite(x));
  }
}
