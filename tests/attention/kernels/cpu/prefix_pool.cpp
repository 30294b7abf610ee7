#include <limits>

#include "attention/kernels/cpu/recurrent/prefix_pool_block.hpp"
#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/recurrent_families.hpp"

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

TEMPLATE_TEST_CASE("kernels prefix pool: values and gradients at awkward sizes", "", float, double,
                   BFloat16) {
  for (const PoolQuery kind : pool_kinds) {
    for (const std::int64_t length : {1, 2, 31, 47, 48, 49, 149}) {
      compare<Pool, TestType>({length, 7, 43}, of(kind));
    }
    compare<Pool, TestType>({70, 1, 5}, of(kind));
    compare<Pool, TestType>({70, 70, 1}, of(kind, 0.4));
    compare<Pool, TestType>({70, 16, 130}, of(kind), 3);
  }
}

TEST_CASE("kernels prefix pool: gradients equal finite differences of the definition") {
  for (const PoolQuery kind : pool_kinds) {
    check_grads<Pool>({70, 5, 6}, of(kind));
    check_grads<Pool>({41, 5, 6, 2, 2, 1, true}, of(kind, 0.7));
    check_grads<Pool>({41, 3, 6, 1, 1, 30}, of(kind));
  }
}

TEST_CASE("kernels prefix pool: gradients of large memories") {
  for (const PoolQuery kind : pool_kinds) {
    check_grads<Pool>({50, 250, 70, 1, 1}, of(kind));
    check_columns<Pool>({101, 130, 130, 1, 2, 1, true}, of(kind), 2);
    check_columns<Pool>({97, 300, 64, 1, 1}, of(kind), 3);  // by slices of latents
    check_columns<Pool>({60, 260, 64, 1, 1, 30}, of(kind), 1);
    compare<Pool, float>({1, 250, 70}, of(kind));
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::amx}) {
      limit_isa(isa);
      compare<Pool, float>({55, 250, 70, 1, 1}, of(kind));
      compare<Pool, double>({55, 250, 70, 1, 1}, of(kind));
    }
    compare<Pool, BFloat16>({50, 260, 64, 1, 1}, of(kind));
    check_lying<Pool>({53, 260, 64, 1, 1}, of(kind), 1);
  }
}

TEST_CASE("kernels prefix pool: a scale below 0 is one like any other") {
  for (const PoolQuery kind : pool_kinds) {
    compare<Pool, float>({97, 16, 24}, of(kind, -0.7));  // rows whole as they are
    compare<Pool, double>({97, 7, 24, 2, 2, 1, true}, of(kind, -0.7));
    compare<Pool, float>({97, 16, 24}, of(kind, 0));
    check_grads<Pool>({41, 8, 6}, of(kind, -0.7));
  }
}

TEST_CASE("kernels prefix pool: hidden tokens are as if they were not there") {
  for (const PoolQuery kind : pool_kinds) {
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
  for (const PoolQuery kind : pool_kinds) {
    for (const double grad : {30.0, -30.0, 2.0}) {
      CAPTURE(static_cast<int>(kind), grad);
      Recurrent<Pool, float> problem({97, 4, 8}, of(kind));
      for (std::size_t i = 0; i < problem.key.size(); ++i) {
        const auto t = static_cast<double>(i / 4 % 97);
        problem.key[i] += static_cast<float>(i % 3 == 0 ? grad * t : 0);
      }
      problem.key[40] = 1000;
      problem.forward(2);
      problem.backward(2);
      CHECK(relative_rms(problem.out, problem.define()) < 2e-4);
      auto exact = problem.widened();
      exact.backward(1);
      CHECK(relative_rms(problem.d_values, exact.d_values) < 1e-3);
      for (const float x : problem.d_key) REQUIRE(std::isfinite(x));
      for (const float x : problem.d_query) REQUIRE(std::isfinite(x));
    }
    compare<Pool, double>({97, 4, 8, 2, 2, 15}, of(kind));
  }
}

TEST_CASE("kernels prefix pool: latents that have seen nothing count in a softmax") {
  for (const PoolQuery kind : pool_kinds) {
    for (const bool masked : {false, true}) {
      CAPTURE(static_cast<int>(kind), masked);
      Recurrent<Pool, double> problem({150, 6, 5, 1, 1, 1, masked}, of(kind));
      blind(problem);
      problem.forward(2);
      CHECK(relative_rms(problem.out, problem.define()) < 1e-12);
      check_grads<Pool>(problem);
    }
  }
}

TEMPLATE_TEST_CASE("kernels prefix pool: pieces from a carry give the whole", "", float, double) {
  using R = TestType;
  for (const PoolQuery kind : pool_kinds) {
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
      CHECK(relative_rms(whole.out, expected) < Bars<R>::forward);
    }
  }
}

TEST_CASE("kernels prefix pool: the same bits for any number of threads, and every ISA is right") {
  for (const PoolQuery kind : pool_kinds) {
    Recurrent<Pool, float> one({131, 20, 64, 1, 1}, of(kind));
    Recurrent<Pool, float> many = one;
    one.forward(1);
    many.forward(4);
    CHECK(one.out == many.out);
  }
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    for (const PoolQuery kind : pool_kinds) {
      compare<Pool, float>({97, 20, 43}, of(kind));
      compare<Pool, double>({97, 20, 43}, of(kind));
    }
  }
}

TEST_CASE("kernels prefix pool: rows that lie ready give the same bits as copies") {
  for (const PoolQuery kind : pool_kinds) {
    check_lying<Pool>({131, 20, 64}, of(kind), 2);
    check_lying<Pool>({97, 70, 64, 1, 1}, of(kind), 2);  // columns of a head apart
    check_lying<Pool>({50, 7, 48, 1, 1}, of(kind), 2);   // and not all as many
    check_lying<Pool>({49, 7, 32, 2, 2, 1, true}, of(kind), 1);
    check_lying<Pool>({50, 7, 128}, of(kind), 1);  // too long to lie ready
  }
}

TEST_CASE("kernels prefix pool: the latents of a lone head are shared out among the threads") {
  for (const PoolQuery kind : pool_kinds) {
    compare<Pool, float>({131, 70, 43, 1, 1}, of(kind), 5);
    compare<Pool, double>({131, 20, 24, 1, 1, 1, true}, of(kind), 3);
    compare<Pool, BFloat16>({70, 40, 16, 1, 1}, of(kind), 2);
    compare<Pool, double>({97, 20, 8, 1, 1, 15}, of(kind), 4);
    check_grads<Pool>({41, 20, 6, 1, 1, 1, true}, of(kind, 0.7));
  }
}

TEST_CASE("kernels prefix pool: gradients are the same bits while each head is one thread's") {
  for (const PoolQuery kind : pool_kinds) {
    Recurrent<Pool, float> one({131, 20, 24}, of(kind));
    Recurrent<Pool, float> many = one;
    one.backward(1);
    many.backward(4);
    CHECK(one.d_query == many.d_query);
    CHECK(one.d_key == many.d_key);
    CHECK(one.d_values == many.d_values);
  }
  // Of a large memory those of queries and keys are, even where a head's latents are shared out.
  Recurrent<Pool, float> one({131, 256, 64, 1, 1}, of(PoolQuery::weights));
  Recurrent<Pool, float> many = one;
  one.backward(1);
  many.backward(4);
  CHECK(one.d_query == many.d_query);
  CHECK(one.d_key == many.d_key);
}

namespace {

/// How many of 64 tokens with these scores, in powers of two, one maximum serves, after a latent
/// that had `before` for its maximum.
std::int64_t served(const std::function<float(int)>& score, float before) {
  PrefixPoolSizes sizes;
  sizes.latents = 3;
  std::vector<float> scores(64 * 16, 0.0F);
  for (int t = 0; t < 64; ++t) scores[static_cast<std::size_t>(16 * t + 1)] = score(t);
  Workspace count;
  PoolBlock<float>(count, sizes, 64, false);
  attnbench::kernels::test::Block memory(count.used());
  Workspace space(memory.data(), count.used());
  const PoolBlock<float> block(space, sizes, 64, false);
  block.forget();
  std::fill_n(block.maximum, 16, 0.0F);
  block.maximum[1] = before;
  Opened<float> opened{{scores.data(), 16, 1.0F}, {scores.data(), 16, 1.0F}, 64};
  measure_pool<float, 16>(PoolQuery::weights, block, opened);
  return opened.tokens;
}

}  // namespace

TEST_CASE(
    "kernels prefix pool: a block is cut where a maximum would rise too far, and only there") {
  const float none = -std::numeric_limits<float>::infinity();
  const auto ramp = [](float grad) {
    return [grad](int t) { return grad * static_cast<float>(t); };
  };
  const float range = pool_range<float>;
  CHECK(served(ramp(-43.3F), none) == 64);
  CHECK(served(ramp(43.3F), none) ==
        2);  // 30 a token in powers of e: a third would be one too many
  CHECK(served(ramp(0.99F * range / 63), none) == 64);
  CHECK(served(ramp(1.01F * range / 63), none) == 32);
  CHECK(served(ramp(1.01F * range / 63), range) == 64);  // the past already stands that high
  CHECK(served([](int t) { return t == 40 ? 1000.0F : 0.0F; }, 0) == 32);
  CHECK(served([](int t) { return t == 0 ? 1000.0F : 0.0F; }, 0) == 64);
  CHECK(served([none](int t) { return t < 8 ? none : 0.0F; }, none) == 8);  // first seen within it
  CHECK(served([none](int) { return none; }, none) == 64);
}
