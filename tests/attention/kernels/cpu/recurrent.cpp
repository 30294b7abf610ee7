// The recurrent families on the CPU against their definitions in double: the causal product and the
// prefix pool, first what both must keep.
#include <limits>

#include "attention/kernels/cpu/recurrent/prefix_pool_block.hpp"
#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/recurrent_families.hpp"

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

namespace {

struct Products {
  template <class T>
  using Family = Product<T>;
  static std::vector<CausalProductSizes> kinds() { return all_product_kinds(); }
};

struct Pools {
  template <class T>
  using Family = Pool<T>;
  static std::vector<PrefixPoolSizes> kinds() {
    std::vector<PrefixPoolSizes> all;
    for (const PoolQuery kind : pool_kinds) all.push_back(of(kind));
    all.push_back(of(PoolQuery::logits, 0.4));
    return all;
  }
};

/// A family with the numbers that it is stored in.
template <class FamilyKinds, class Number>
struct Stored {
  template <class T>
  using Family = typename FamilyKinds::template Family<T>;
  using T = Number;
  static auto kinds() { return FamilyKinds::kinds(); }
};

}  // namespace

TEMPLATE_TEST_CASE("kernels recurrent: values and gradients at awkward sizes", "",
                   (Stored<Products, float>), (Stored<Products, double>),
                   (Stored<Products, BFloat16>), (Stored<Pools, float>), (Stored<Pools, double>),
                   (Stored<Pools, BFloat16>)) {
  using T = typename TestType::T;
  for (const auto& kind : TestType::kinds()) {
    for (const std::int64_t length : {1, 2, 31, 47, 48, 49, 149}) {
      compare<TestType::template Family, T>({length, 7, 43}, kind);
    }
    compare<TestType::template Family, T>({70, 1, 5}, kind);
    compare<TestType::template Family, T>({70, 70, 1}, kind);
    compare<TestType::template Family, T>({70, 16, 130}, kind, 3);
    compare<TestType::template Family, T>({131, 20, 24, 2, 2, 1, true}, kind);
  }
}

TEMPLATE_TEST_CASE("kernels recurrent: gradients equal finite differences of the definition", "",
                   Products, Pools) {
  for (const auto& kind : TestType::kinds()) {
    check_grads<TestType::template Family>({70, 5, 6}, kind);
    check_grads<TestType::template Family>({41, 5, 6, 2, 2, 1, true}, kind);
  }
}

TEMPLATE_TEST_CASE("kernels recurrent: same bits for any number of threads, every ISA right", "",
                   Products, Pools) {
  for (const auto& kind : TestType::kinds()) {
    Recurrent<TestType::template Family, float> one({131, 20, 64, 1, 1}, kind);
    auto many = one;
    one.forward(1);
    many.forward(4);
    CHECK(one.out == many.out);
  }
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    for (const auto& kind : TestType::kinds()) {
      compare<TestType::template Family, float>({97, 20, 43}, kind);
      compare<TestType::template Family, double>({97, 20, 43}, kind);
    }
  }
}

TEMPLATE_TEST_CASE("kernels recurrent: rows that lie ready give the same bits as copies", "",
                   Products, Pools) {
  for (const auto& kind : TestType::kinds()) {
    check_lying<TestType::template Family>({131, 20, 64}, kind, 2);
    check_lying<TestType::template Family>({97, 70, 64, 1, 1}, kind, 2);  // columns of a head apart
    check_lying<TestType::template Family>({50, 7, 48, 1, 1}, kind, 2);   // and not all as many
    check_lying<TestType::template Family>({49, 7, 32, 2, 2, 1, true}, kind, 1);
    check_lying<TestType::template Family>({50, 7, 128}, kind, 1);  // too long to lie ready
  }
}

TEMPLATE_TEST_CASE("kernels recurrent: what a lone head has is shared out among the threads", "",
                   Products, Pools) {
  for (const auto& kind : TestType::kinds()) {
    compare<TestType::template Family, float>({131, 70, 43, 1, 1}, kind, 5);
    compare<TestType::template Family, double>({131, 20, 24, 1, 1, 1, true}, kind, 3);
    compare<TestType::template Family, BFloat16>({70, 40, 16, 1, 1}, kind, 2);
    check_grads<TestType::template Family>({41, 20, 6, 1, 1, 1, true}, kind);
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

TEST_CASE("kernels prefix pool: a scale below 0, and scores far from one another") {
  for (const PoolQuery kind : pool_kinds) {
    compare<Pool, float>({97, 16, 24}, of(kind, -0.7));  // rows whole as they are
    compare<Pool, double>({97, 7, 24, 2, 2, 1, true}, of(kind, -0.7));
    compare<Pool, float>({97, 16, 24}, of(kind, 0));
    check_grads<Pool>({41, 8, 6}, of(kind, -0.7));
    check_grads<Pool>({41, 5, 6, 2, 2, 1, true}, of(kind, 0.7));
    check_grads<Pool>({41, 3, 6, 1, 1, 30}, of(kind));
    compare<Pool, double>({97, 20, 8, 1, 1, 15}, of(kind), 4);
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
  // With a large memory the gradients of queries and keys are, even where a head's latents are
  // shared out.
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
