// Keys and values pooled by one set of weights, against the definition of softmax in double: once
// with the values, once with the keys in their place.
#include "attention/kernels/softmax_pool.hpp"

#include <algorithm>
#include <limits>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/softmax_problem.hpp"

namespace attnbench::kernels::test {
namespace {

template <class T>
struct Pool : Problem<T> {
  std::vector<T> keys_out;

  Pool(std::int64_t slots, std::int64_t keys, std::int64_t dim, std::int64_t value_dim,
       double spread = 1, bool masked = false)
      : Problem<T>(sized(slots, keys, dim, value_dim), spread, masked), keys_out(this->q.size()) {}

  static SoftmaxSizes sized(std::int64_t slots, std::int64_t keys, std::int64_t dim,
                            std::int64_t value_dim) {
    SoftmaxSizes sizes;
    sizes.batch = 2;
    sizes.heads = 4;
    sizes.kv_heads = 2;
    sizes.length = slots;
    sizes.key_length = keys;
    sizes.head_dim = dim;
    sizes.value_dim = value_dim;
    sizes.scale = 0.3;
    return sizes;
  }
  void run(int threads) {
    const auto& n = this->sizes;
    const SoftmaxPoolArguments<T> arguments{this->arguments(),
                                            rows_of<T>(keys_out, n.heads, n.length, n.head_dim)};
    on_workspace(threads, softmax_pool_bytes<T>(n, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   softmax_pool(n, arguments, team, space, bytes);
                 });
  }
  std::vector<double> define_keys() const {
    SoftmaxSizes of_keys = this->sizes;
    of_keys.value_dim = of_keys.head_dim;
    Problem<T> problem(of_keys);
    problem.q = this->q;
    problem.k = problem.v = this->k;
    problem.mask = this->mask;
    return define(problem).out;
  }
  void compare() {
    const auto& n = this->sizes;
    CAPTURE(n.length, n.key_length, n.head_dim, n.value_dim, n.scale, this->mask.empty());
    run(3);
    const Expected expected = define(*this);
    CHECK(relative_rms(this->out, expected.out) < Bars<T>::forward);
    CHECK(relative_rms(this->lse, expected.lse) < Bars<T>::forward);
    CHECK(relative_rms(keys_out, define_keys()) < Bars<T>::forward);
  }
};

}  // namespace

TEMPLATE_TEST_CASE("kernels softmax pool: equals its definition at odd sizes", "", float, double) {
  for (const bool masked : {false, true}) {
    for (const auto& [slots, keys] :
         {std::pair{1, 1}, {3, 2}, {7, 64}, {64, 65}, {65, 63}, {9, 3}}) {
      for (const auto& [dim, value_dim] : {std::pair{1, 1}, {24, 40}, {64, 64}, {37, 16}}) {
        Pool<TestType>(slots, keys, dim, value_dim, 1, masked && keys > 2).compare();
      }
    }
    // In many parts, and more slots than one item has.
    Pool<TestType>(20, 2500, 24, 40, 1, masked).compare();
    Pool<TestType>(300, 1100, 16, 32, 1, masked).compare();
  }
}

TEST_CASE("kernels softmax pool: sharp weights, and every instruction set") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    Pool<float>(70, 600, 24, 40, 4, true).compare();
    Pool<double> opposite(70, 600, 24, 40, 1, true);
    opposite.sizes.scale = -2;
    opposite.compare();
  }
  limit_isa(Isa::amx);
}

TEST_CASE(
    "kernels softmax pool: the same bits for any number of threads, and nothing of hidden keys "
    "alone") {
  Pool<float> one(100, 3000, 24, 40, 1, true);
  Pool<float> many = one;
  one.run(1);
  many.run(5);
  CHECK(one.out == many.out);
  CHECK(one.keys_out == many.keys_out);
  CHECK(one.lse == many.lse);
  std::fill(one.mask.begin(), one.mask.end(), std::uint8_t{0});
  one.run(2);
  for (const float x : one.out) REQUIRE(x == 0);
  for (const float x : one.keys_out) REQUIRE(x == 0);
  for (const float x : one.lse) REQUIRE(x == std::numeric_limits<float>::infinity());
}

TEST_CASE("kernels softmax pool: without a logarithm, without slots, without keys") {
  Pool<double> pool(20, 100, 5, 7);
  pool.run(2);
  const auto values = pool.out, keys = pool.keys_out;
  const auto& n = pool.sizes;
  SoftmaxPoolArguments<double> arguments{
      pool.arguments(), rows_of<double>(pool.keys_out, n.heads, n.length, n.head_dim)};
  arguments.lse = nullptr;
  on_workspace(2, softmax_pool_bytes<double>(n, 2),
               [&](ThreadTeam& team, void* space, std::size_t bytes) {
                 softmax_pool(n, arguments, team, space, bytes);
               });
  CHECK(pool.out == values);
  CHECK(pool.keys_out == keys);
  Pool<float>(0, 100, 5, 7).run(2);
  Pool<float> nothing(20, 0, 5, 7);
  nothing.run(2);
  for (const float x : nothing.keys_out) CHECK(x == 0);
}

}  // namespace attnbench::kernels::test
