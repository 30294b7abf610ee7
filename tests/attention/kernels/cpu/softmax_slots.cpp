// The tiled softmax where one side is short, on both sides of every bound at which another way of
// computing it begins.
#include "attention/kernels/cpu/softmax/slots.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/softmax_problem.hpp"

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

namespace {

SoftmaxSizes sized(std::int64_t length, std::int64_t keys) {
  SoftmaxSizes sizes;
  sizes.batch = 2;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  sizes.length = length;
  sizes.key_length = keys;
  sizes.head_dim = 24;
  sizes.value_dim = 40;
  sizes.scale = 0.3;
  return sizes;
}

template <class T>
void compare(const SoftmaxSizes& sizes, double spread = 1, bool masked = false) {
  CAPTURE(sizes.length, sizes.key_length, sizes.head_dim, sizes.value_dim, spread, masked);
  Problem<T> problem(sizes, spread, masked);
  problem.forward(2);
  const Expected expected = define(problem);
  CHECK(relative_rms(problem.out, expected.out) < Bars<T>::forward);
  CHECK(relative_rms(problem.lse, expected.lse) < Bars<T>::forward);
}

}  // namespace

TEST_CASE("kernels softmax, slots: taken where all queries see all keys and a side is short") {
  CHECK(slots_take(sized(64, 2000)));
  CHECK(slots_take(sized(2000, 64)));
  CHECK(slots_take(sized(2000, 256)));
  CHECK(slots_take(sized(256, 2000)));
  CHECK_FALSE(slots_take(sized(257, 257)));
  CHECK_FALSE(slots_take(sized(8, 2000)));
  CHECK_FALSE(slots_take(sized(8, 64)));
  SoftmaxSizes sizes = sized(64, 64);
  sizes.right = 0;
  CHECK_FALSE(slots_take(sizes));
  sizes.right = 63;
  CHECK(slots_take(sizes));
  sizes.left = 62;
  CHECK_FALSE(slots_take(sizes));
  sizes.left = sizes.bias_reach = 63;
  CHECK_FALSE(slots_take(sizes));
}

TEMPLATE_TEST_CASE("kernels softmax, slots: many queries of few keys", "", float, double,
                   BFloat16) {
  for (const std::int64_t keys : {1, 2, 15, 63, 64, 65, 130, 256}) {
    for (const std::int64_t length : {9, 64, 127, 600}) {
      compare<TestType>(sized(length, keys));
      if (keys > 2) compare<TestType>(sized(length, keys), 1, true);
    }
  }
}

TEMPLATE_TEST_CASE("kernels softmax, slots: few queries of many keys", "", float, double,
                   BFloat16) {
  for (const std::int64_t length : {9, 16, 47, 64, 65, 200, 256}) {
    for (const std::int64_t keys : {257, 300}) {
      compare<TestType>(sized(length, keys));
      compare<TestType>(sized(length, keys), 1, true);
    }
  }
  // In many parts.
  for (const std::int64_t length : {16, 65, 256}) compare<TestType>(sized(length, 2500), 1, true);
}

TEMPLATE_TEST_CASE("kernels softmax, slots: widths that are read where they lie, and sharp logits",
                   "", float, double) {
  for (const std::int64_t width : {1, 16, 64, 128}) {
    for (const auto& [length, keys] : {std::pair{70, 300}, std::pair{300, 70}}) {
      SoftmaxSizes sizes = sized(length, keys);
      sizes.head_dim = sizes.value_dim = width;
      compare<TestType>(sizes);
      sizes.scale = -2;
      compare<TestType>(sizes, 1, true);
    }
  }
}

TEST_CASE("kernels softmax, slots: every instruction set gives the same numbers") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    CAPTURE(static_cast<int>(best_isa()));
    for (const auto& [length, keys] : {std::pair{70, 300}, std::pair{300, 70}}) {
      compare<float>(sized(length, keys), 1, true);
      compare<double>(sized(length, keys));
      compare<BFloat16>(sized(length, keys));
    }
  }
  limit_isa(Isa::amx);
}

TEST_CASE("kernels softmax, slots: one part may hold all the weight, and what is hidden nothing") {
  for (const auto& [length, keys] : {std::pair{40, 2500}, std::pair{500, 90}}) {
    Problem<float> problem(sized(length, keys), 1, true);
    for (std::size_t i = 0; i < 24; ++i) problem.k[keys / 2 * 24 + i] = 60 * problem.q[i];
    const Expected expected = define(problem);
    problem.forward(2);
    CHECK(relative_rms(problem.out, expected.out) < 3e-6);
    std::fill(problem.mask.begin(), problem.mask.end(), std::uint8_t{0});
    problem.forward(2);
    for (const float x : problem.out) REQUIRE(x == 0);
    for (const float x : problem.lse) REQUIRE(x == std::numeric_limits<float>::infinity());
  }
}

TEST_CASE("kernels softmax, slots: a NaN reaches the queries that see it, and no other head") {
  for (const auto& [length, keys] : {std::pair{40, 600}, std::pair{600, 40}}) {
    SoftmaxSizes sizes = sized(length, keys);
    Problem<float> problem(sizes);
    problem.forward(2);
    const auto out = problem.out;
    problem.k[7 * 24 + 3] = std::numeric_limits<float>::quiet_NaN();
    problem.forward(2);
    bool right = true;
    const std::size_t seeing = 2 * static_cast<std::size_t>(length) * 40;  // two heads share it
    for (std::size_t i = 0; i < out.size(); ++i) {
      right = right && (i < seeing ? std::isnan(problem.out[i]) : problem.out[i] == out[i]);
    }
    CHECK(right);
  }
}

TEMPLATE_TEST_CASE("kernels softmax, slots: the same bits for any number of threads", "", float,
                   BFloat16) {
  for (const auto& [length, keys] : {std::pair{100, 3000}, std::pair{3000, 100}}) {
    SoftmaxSizes sizes = sized(length, keys);
    sizes.batch = 1;
    sizes.heads = sizes.kv_heads = 1;
    Problem<TestType> one(sizes), many(sizes);
    one.forward(1);
    many.forward(5);
    const auto same = [](TestType a, TestType b) { return widen(a) == widen(b); };
    CHECK(std::equal(one.out.begin(), one.out.end(), many.out.begin(), same));
    CHECK(one.lse == many.lse);
  }
}
