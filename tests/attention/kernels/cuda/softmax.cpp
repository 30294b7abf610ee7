#include "attention/kernels/cuda/softmax/softmax.hpp"

#include "tests/attention/kernels/cuda/softmax_device.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

template <class T>
void check(const Problem<T>& problem, const Expected& expected, int way, double spread, bool masked,
           const Layout& layout) {
  const SoftmaxSizes& sizes = problem.sizes;
  CAPTURE(sizes.batch, sizes.heads, sizes.kv_heads, sizes.length, sizes.key_length, sizes.head_dim,
          sizes.value_dim, sizes.left, sizes.right, sizes.offset, sizes.scale, spread, masked,
          layout.token_major, layout.pad, way);
  CHECK(relative_rms(problem.out, expected.out) < Bars<T>::forward);
  double greatest = 0;
  for (std::size_t i = 0; i < expected.lse.size(); ++i) {
    if (std::isinf(expected.lse[i])) {
      if (double{problem.lse[i]} != expected.lse[i]) greatest = expected.lse[i];
      continue;
    }
    const double error = std::fabs(double{problem.lse[i]} - expected.lse[i]);
    greatest = std::fmax(greatest, std::isnan(error) ? 1e300 : error);
  }
  CHECK(greatest < 1e-5 * (1 + spread * spread * std::fabs(sizes.scale) * double(sizes.head_dim)));
}

template <class T>
void compare(const SoftmaxSizes& sizes, double spread = 1.0, bool masked = false,
             const Layout& layout = {},
             const std::vector<Way>& ways = {Way::chosen, Way::tiles, Way::split}) {
  Problem<T> problem(sizes, spread, masked);
  const Expected expected = define(problem);
  for (const Way way : ways) {
    DeviceProblem<T>(problem, layout).forward(way);
    check(problem, expected, static_cast<int>(way), spread, masked, layout);
  }
}

}  // namespace

TEST_CASE("softmax sizes that no CUDA kernel can do are refused with the reason") {
  CHECK(softmax_refusal(square(100, 64, true)).empty());
  SoftmaxSizes sizes = square(100, 257, true);
  CHECK_FALSE(softmax_refusal(sizes).empty());
  CHECK_THROWS_AS(softmax_forward_bytes<BFloat16>(sizes), std::logic_error);
  sizes = square(100, 64, true);
  sizes.heads = 3;
  sizes.kv_heads = 2;
  CHECK_FALSE(softmax_refusal(sizes).empty());
  sizes = square(std::int64_t{1} << 40, 64, true);
  CHECK_FALSE(softmax_refusal(sizes).empty());
  sizes = square(1 << 20, 64, true);
  sizes.batch = 1 << 20;
  CHECK_FALSE(softmax_refusal(sizes).empty());
  sizes = square(1, 64, true);  // which gradients count as 128
  sizes.heads = sizes.kv_heads = 1;
  sizes.batch = 1 << 23;
  CHECK(softmax_refusal(sizes).empty());
  ++sizes.batch;
  CHECK_FALSE(softmax_refusal(sizes).empty());
  sizes.batch = 1;
  for (const std::int64_t offset : {std::int64_t{1} << 31, -(std::int64_t{1} << 31)}) {
    sizes.offset = offset;
    CHECK_FALSE(softmax_refusal(sizes).empty());
  }
  sizes.offset = 0;
  sizes.left = sizes.right = 5;
  sizes.bias_reach = std::int64_t{1} << 29;
  CHECK(softmax_refusal(sizes).empty());
  sizes.bias_reach = std::int64_t{1} << 30;  // twice of which, and one, is more than 31 bits hold
  CHECK_FALSE(softmax_refusal(sizes).empty());
}

TEST_CASE("a softmax workspace holds the parts' results, or two numbers a query") {
  NEEDS_DEVICE();
  const SoftmaxSizes sizes = square(4096, 64, true);
  CHECK(softmax_forward_bytes<BFloat16>(sizes) == 0);
  CHECK(softmax_backward_bytes<BFloat16>(sizes) == std::size_t{2} * 2 * 4096 * sizeof(float));
  SoftmaxSizes few = square(1, 64, true);
  few.heads = few.kv_heads = 1;
  few.key_length = 1 << 16;
  few.offset = few.key_length - 1;
  const auto parts = static_cast<std::size_t>(2 * card().multiprocessors);
  CHECK(softmax_forward_bytes<Half>(few) >= parts * 65 * sizeof(float));
  CHECK(softmax_forward_bytes<float>(few) >= parts * 65 * sizeof(float));
  Problem<float> problem(square(3, 64, true));
  DeviceProblem<float> device(problem);
  SoftmaxArguments<float> blind = device.arguments();
  blind.lse = nullptr;
  CHECK_THROWS_AS(softmax_backward<float>(problem.sizes, blind, {}, Stream{}, problem.out.data(),
                                          std::size_t{1} << 20),
                  std::logic_error);
  CHECK_THROWS_AS(softmax_backward<float>(problem.sizes, device.arguments(), {}, Stream{},
                                          problem.out.data(), 64),
                  std::logic_error);
}

TEMPLATE_TEST_CASE("CUDA softmax: values at awkward sizes", "", BFloat16, Half, float) {
  NEEDS_DEVICE();
  const auto run = [](std::int64_t length, std::int64_t dim) {
    compare<TestType>(square(length, dim, length % 2 == 1));
  };
  if (!emulated()) {
    for (const std::int64_t length : {1, 3, 64, 127, 129, 257}) {
      for (const std::int64_t dim : {1, 43, 64, 80, 128, 200, 256}) run(length, dim);
    }
    return;
  }
  run(1, 1);
  run(1, 128);
  run(3, 43);
  run(64, 256);
  run(65, 80);
  run(127, 200);
  run(129, 64);
  run(129, 128);
  run(257, 43);
}

TEMPLATE_TEST_CASE("CUDA softmax: windows, masks, grouped heads, unequal lengths", "", BFloat16,
                   Half, float) {
  NEEDS_DEVICE();
  const std::int64_t length = !emulated() ? 331 : std::is_same_v<TestType, BFloat16> ? 139 : 75;
  SoftmaxSizes sizes = square(length, 24, true);
  sizes.batch = 2;
  sizes.heads = 4;
  sizes.value_dim = 40;
  for (const std::int64_t left : {0, 70, 500}) {
    for (const std::int64_t right : {0, 7, 200}) {
      sizes.left = left;
      sizes.right = right;
      sizes.batch = emulated() ? 1 : 2;
      compare<TestType>(sizes, 1.0, false, {}, {Way::tiles, Way::split});
      if (right == 7) compare<TestType>(sizes, 1.0, true, {}, {Way::tiles, Way::split});
    }
  }
  sizes.batch = 2;
  sizes.left = SoftmaxSizes::far;
  sizes.right = 0;
  for (const std::int64_t keys : {std::int64_t{1}, std::int64_t{60}, length, length + 110}) {
    sizes.key_length = keys;
    sizes.offset = keys - sizes.length;
    compare<TestType>(sizes, 1.0, keys % 2 == 1);
  }
  sizes.head_dim = 128;
  sizes.value_dim = 43;
  sizes.offset = length + 69;  // every query sits past the last key
  sizes.left = length + 19;
  sizes.batch = 1;
  compare<TestType>(sizes);
}

TEMPLATE_TEST_CASE("CUDA softmax: rows that are not dense, and rows that begin anywhere", "",
                   BFloat16, Half, float) {
  NEEDS_DEVICE();
  for (const std::int64_t dim : {64, 72}) {
    SoftmaxSizes sizes = square(emulated() ? 70 : 150, dim, true);
    sizes.batch = 2;
    for (const std::int64_t pad : {0, 8, 3}) {
      compare<TestType>(sizes, 1.0, pad == 3, {dim == 64, pad}, {Way::tiles, Way::split});
    }
  }
}

TEMPLATE_TEST_CASE("CUDA softmax: a few queries at the end of many keys", "", BFloat16, Half,
                   float) {
  NEEDS_DEVICE();
  const auto run = [](std::int64_t length, std::int64_t dim, bool masked, std::int64_t left) {
    SoftmaxSizes sizes = square(length, dim, true);
    sizes.heads = 4;
    sizes.key_length = emulated() ? 700 : 3000;
    sizes.offset = sizes.key_length - length;
    sizes.left = left;
    compare<TestType>(sizes, 1.0, masked, {}, {Way::chosen, Way::split});
  };
  run(1, 128, false, SoftmaxSizes::far);
  run(1, 64, true, 600);
  run(4, 43, true, SoftmaxSizes::far);
  run(16, 256, false, 300);
  run(16, 64, true, 300);
}

TEMPLATE_TEST_CASE("CUDA softmax: sharp and falling logits stay right", "", BFloat16, Half, float) {
  NEEDS_DEVICE();
  compare<TestType>(square(150, 64, true), 4.0);
  SoftmaxSizes negative = square(150, 64, false);
  negative.scale = -negative.scale;
  compare<TestType>(negative, 4.0);
  negative.scale = 0;
  compare<TestType>(negative);
  // Logits that rise, or fall, by 30 a token: the base moves with every key, or never.
  for (const double step : {30.0, -30.0, 3.0}) {
    SoftmaxSizes sizes = square(140, 64, true);
    Problem<TestType> problem(sizes);
    for (std::size_t i = 0; i < problem.q.size(); ++i) {
      problem.q[i] = kernels::test::stored<TestType>(i % 64 == 0 ? 8 : 0);
      problem.k[i] = kernels::test::stored<TestType>(i % 64 == 0 ? step * double(i / 64 % 140) : 0);
    }
    DeviceProblem<TestType>(problem).forward();
    CAPTURE(step);
    CHECK(relative_rms(problem.out, define(problem).out) < Bars<TestType>::forward);
  }
}

TEMPLATE_TEST_CASE("CUDA softmax: a query that sees no key has output 0 and lse +infinity", "",
                   BFloat16, Half, float) {
  NEEDS_DEVICE();
  SoftmaxSizes sizes = square(300, 64, true);
  sizes.key_length = 10;
  sizes.offset = -200;
  Problem<TestType> problem(sizes);
  DeviceProblem<TestType>(problem).forward();
  for (std::size_t i = 0; i < 200 * 64; ++i) REQUIRE(widen(problem.out[i]) == 0);
  CHECK(problem.lse[199] == std::numeric_limits<float>::infinity());
  CHECK(std::isfinite(problem.lse[200]));
  sizes.key_length = 0;
  Problem<TestType> none(sizes);
  DeviceProblem<TestType>(none).forward();
  for (const auto x : none.out) REQUIRE(widen(x) == 0);
  for (const float x : none.lse) REQUIRE(x == std::numeric_limits<float>::infinity());
}

TEMPLATE_TEST_CASE("CUDA softmax: the same bits twice, and a future key changes nothing before it",
                   "", BFloat16, Half) {
  NEEDS_DEVICE();
  const auto bits = [](const std::vector<TestType>& x) {
    std::vector<std::uint16_t> out;
    for (const auto value : x) out.push_back(value.bits);
    return out;
  };
  Problem<TestType> problem(square(300, 64, true));
  DeviceProblem<TestType>(problem).forward();
  const auto out = bits(problem.out);
  DeviceProblem<TestType>(problem).forward();
  CHECK(out == bits(problem.out));
  for (std::size_t d = 0; d < 64; ++d)
    problem.k[170 * 64 + d] = kernels::test::stored<TestType>(100);
  DeviceProblem<TestType>(problem).forward();
  const auto other = bits(problem.out);
  CHECK(std::equal(out.begin(), out.begin() + 170 * 64, other.begin()));
  CHECK_FALSE(std::equal(out.begin(), out.begin() + 300 * 64, other.begin()));
}

}  // namespace attnbench::kernels::cuda::test
