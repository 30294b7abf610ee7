// The whole pool on the CPU against its definition in double: values, gradients, masks, extremes.
#include <algorithm>
#include <random>
#include <stdexcept>
#include <tuple>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/whole_pool_problem.hpp"

namespace attnbench::kernels::test {
namespace {

constexpr PoolQuery kinds[] = {PoolQuery::weights, PoolQuery::logits, PoolQuery::logits_plus_z};

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
void check_grads(const WholePoolSizes& sizes, bool masked) {
  CAPTURE(static_cast<int>(sizes.query), sizes.length, sizes.key_length, masked);
  WholePool<double> problem(sizes, 1, masked);
  problem.backward(2);
  std::mt19937 engine(3);
  const auto loss = [&] { return inner(problem.define(), problem.d_out); };
  check_grad(engine, loss, problem.query, problem.d_query);
  check_grad(engine, loss, problem.scores, problem.d_scores);
  check_grad(engine, loss, problem.values, problem.d_values);
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

TEST_CASE("kernels whole pool: gradients are grads of the definition") {
  for (const PoolQuery kind : kinds) {
    for (const bool masked : {false, true}) {
      check_grads(sized(kind, 23, 31, 5, 4), masked);
      check_grads(sized(kind, 70, 150, 3, 2), masked);
    }
  }
}

TEST_CASE("kernels whole pool: a scale below 0 is one like any other") {
  for (const PoolQuery kind : kinds) {
    WholePoolSizes sizes = sized(kind, 97, 70, 16, 24);
    sizes.scale = -0.7;
    compare<float>(sizes);
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

TEMPLATE_TEST_CASE("kernels whole pool: logits may be made of tokens and directions", "", float,
                   double, BFloat16) {
  for (const PoolQuery kind : {PoolQuery::logits, PoolQuery::logits_plus_z}) {
    for (const bool half_square : {false, true}) {
      for (const bool masked : {false, true}) {
        for (const auto& [length, latents, dim] :
             {std::tuple{1, 1, 1}, {65, 7, 5}, {70, 130, 16}, {64, 266, 20}, {300, 64, 64}}) {
          CAPTURE(static_cast<int>(kind), half_square, masked, length, latents, dim);
          auto sizes = sized(kind, length, length + 9, latents, 18);
          sizes.scale = 0.5;
          Directed<TestType> problem(sizes, dim, half_square, masked);
          problem.forward(3);
          CHECK(relative_rms(problem.given.out, problem.define()) < Bars<TestType>::forward);
        }
      }
    }
  }
}

TEST_CASE("kernels whole pool: directions keep to bits, instruction sets and bounds") {
  auto sizes = sized(PoolQuery::logits_plus_z, 300, 500, 70, 24);
  sizes.scale = 0.5;
  Directed<float> one(sizes, 33, true, true);
  Directed<float> many = one;
  one.forward(1);
  many.forward(4);
  CHECK(one.given.out == many.given.out);
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    many.forward(2);
    CHECK(relative_rms(many.given.out, one.define()) < Bars<float>::forward);
  }
  // Logits of hundreds, in both directions.
  for (float& each : many.given.scores) each *= 10;
  many.forward(2);
  CHECK(relative_rms(many.given.out, many.define()) < 2e-4);

  one.given.sizes.query = PoolQuery::weights;
  CHECK_THROWS_AS(one.forward(1), std::logic_error);
  CHECK_THROWS_AS(one.given.backward(1), std::logic_error);
}

}  // namespace attnbench::kernels::test
