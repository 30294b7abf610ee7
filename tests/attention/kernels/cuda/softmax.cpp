#include "attention/kernels/cuda/softmax/softmax.hpp"

#include "tests/attention/kernels/cuda/softmax_device.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

template <class T>
void check(const Problem<T>& problem, const Expected& expected, double spread) {
  const SoftmaxSizes& sizes = problem.sizes;
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

/// Values and gradients against the definition in double; of the chosen kernels, and the values of
/// the plain one where that is another.
template <class T>
void compare(const SoftmaxSizes& sizes, double spread = 1.0, bool masked = false,
             const Layout& layout = {}) {
  Problem<T> problem(sizes, spread, masked);
  const Expected expected = define(problem);
  CAPTURE(sizes.batch, sizes.heads, sizes.kv_heads, sizes.length, sizes.key_length, sizes.head_dim,
          sizes.value_dim, sizes.left, sizes.right, sizes.offset, sizes.scale, spread, masked,
          layout.token_major, layout.pad);
  if constexpr (!std::is_same_v<T, float>) {
    DeviceProblem<T>(problem, layout).forward(Way::plain);
    check(problem, expected, spread);
  }
  DeviceProblem<T> device(problem, layout);
  device.forward();
  check(problem, expected, spread);
  device.backward();
  // One visible key leaves no gradient for q and k: what is left of it is rounding.
  if (sizes.left + sizes.right > 0 && sizes.key_length > 1) {
    CHECK(relative_rms(problem.dq, expected.dq) < Bars<T>::backward);
    CHECK(relative_rms(problem.dk, expected.dk) < Bars<T>::backward);
  }
  CHECK(relative_rms(problem.dv, expected.dv) < Bars<T>::backward);
}

/// Bit by bit.
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
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
  sizes.left = sizes.right = sizes.bias_reach = 5;
  CHECK_THAT(softmax_refusal(sizes), Catch::Contains("biases by distance"));
}

TEST_CASE("a softmax workspace is two numbers a query, for gradients, which need the lse") {
  NEEDS_DEVICE();
  const SoftmaxSizes sizes = square(4096, 64, true);
  CHECK(softmax_forward_bytes<BFloat16>(sizes) == 0);
  CHECK(softmax_backward_bytes<BFloat16>(sizes) == std::size_t{2} * 2 * 4096 * sizeof(float));
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

TEST_CASE("the tensor cores take aligned rows of up to 128 columns, and no others") {
  NEEDS_DEVICE();
  const auto takes = [](std::int64_t dim, const Layout& layout = {}) {
    Problem<BFloat16> problem(square(3, dim, true));
    return DeviceProblem<BFloat16>(problem, layout).on_tensor_cores();
  };
  for (const std::int64_t dim : {8, 64, 72, 128}) CHECK(takes(dim));
  for (const std::int64_t dim : {43, 136}) CHECK_FALSE(takes(dim));
  CHECK(takes(64, {true, 8}));
  CHECK_FALSE(takes(64, {true, 3}));
}

TEMPLATE_TEST_CASE("CUDA softmax: awkward sizes", "", BFloat16, Half, float) {
  NEEDS_DEVICE();
  const auto run = [](std::int64_t length, std::int64_t dim) {
    compare<TestType>(square(length, dim, length % 2 == 1));
  };
  if (!emulated()) {
    for (const std::int64_t length : {2, 3, 64, 127, 129, 257}) {
      for (const std::int64_t dim : {1, 43, 64, 80, 128, 200, 256}) run(length, dim);
    }
    return;
  }
  run(2, 1);
  run(3, 43);
  run(20, 256);
  run(65, 80);
  run(129, 64);  // a second tile of queries
  if (std::is_same_v<TestType, BFloat16>) run(130, 128);
}

TEMPLATE_TEST_CASE("CUDA softmax: windows, masks, grouped heads, unequal lengths", "", BFloat16,
                   Half, float) {
  NEEDS_DEVICE();
  // 139: a second tile of queries, a third of keys.
  const std::int64_t length = !emulated() ? 331 : std::is_same_v<TestType, BFloat16> ? 139 : 40;
  SoftmaxSizes sizes = square(length, 24, true);
  sizes.heads = 2;
  sizes.kv_heads = 1;
  sizes.value_dim = 40;
  for (const auto& [left, right] : {std::pair{0, 0}, std::pair{70, 7}, std::pair{500, 200}}) {
    sizes.left = left;
    sizes.right = right;
    compare<TestType>(sizes, 1.0, right == 7);
  }
  sizes.left = SoftmaxSizes::far;
  sizes.right = 0;
  for (const std::int64_t keys : {std::int64_t{1}, std::int64_t{60}, length + 70}) {
    sizes.key_length = keys;
    sizes.offset = keys - sizes.length;
    sizes.batch = keys == 60 ? 2 : 1;
    compare<TestType>(sizes, 1.0, keys == 60);
  }
  sizes.head_dim = 128;
  sizes.value_dim = 43;
  sizes.offset = length + 69;  // every query sits past the last key
  sizes.left = length + 19;
  compare<TestType>(sizes);
}

TEMPLATE_TEST_CASE("CUDA softmax: rows that are not dense, and rows that begin anywhere", "",
                   BFloat16, Half, float) {
  NEEDS_DEVICE();
  SoftmaxSizes sizes = square(emulated() ? 20 : 150, 64, true);
  sizes.batch = 2;
  for (const std::int64_t pad : {0, 8, 3}) compare<TestType>(sizes, 1.0, pad == 3, {pad < 8, pad});
}

TEMPLATE_TEST_CASE("CUDA softmax: a few queries at the end of many keys", "", BFloat16, float) {
  NEEDS_DEVICE();
  for (const std::int64_t length : {1, 4}) {
    SoftmaxSizes sizes = square(length, 64, true);
    sizes.heads = 4;
    sizes.key_length = emulated() ? 300 : 3000;
    sizes.offset = sizes.key_length - length;
    if (length == 4) sizes.left = 150;
    compare<TestType>(sizes, 1.0, length == 4);
  }
}

TEMPLATE_TEST_CASE("CUDA softmax: sharp, falling and negative logits stay right", "", BFloat16,
                   Half, float) {
  NEEDS_DEVICE();
  const std::int64_t length = emulated() ? 80 : 150;  // two tiles of keys
  SoftmaxSizes sizes = square(length, 64, true);
  compare<TestType>(sizes, 2.0);
  sizes.scale = -sizes.scale;
  compare<TestType>(sizes);
  // Logits that rise, or fall, by 30 a token: the base moves with every key, or never. Equal ones.
  for (const double step : {30.0, -30.0, 3.0, 0.0}) {
    Problem<TestType> problem(square(length, 64, true));
    if (step == 0) problem.sizes.scale = 0;
    for (std::size_t i = 0; i < problem.q.size(); ++i) {
      const auto token = static_cast<double>(i / 64 % static_cast<std::size_t>(length));
      problem.q[i] = kernels::test::stored<TestType>(i % 64 == 0 ? 8 : 0);
      problem.k[i] = kernels::test::stored<TestType>(i % 64 == 0 ? step * token : 0);
    }
    DeviceProblem<TestType>(problem).forward();
    CAPTURE(step);
    CHECK(relative_rms(problem.out, define(problem).out) < Bars<TestType>::forward);
  }
}

TEMPLATE_TEST_CASE("CUDA softmax: queries without keys, keys without queries, the same bits twice",
                   "", BFloat16, Half, float) {
  NEEDS_DEVICE();
  SoftmaxSizes sizes = square(150, 64, true);
  sizes.key_length = 50;
  sizes.offset = -130;  // the last 20 queries see keys, of which 20 are seen
  Problem<TestType> problem(sizes);
  const auto run = [&] {
    DeviceProblem<TestType> device(problem);
    device.forward();
    device.backward();
  };
  run();
  for (std::size_t i = 0; i < 130 * 64; ++i) {
    REQUIRE(widen(problem.out[i]) == 0);
    REQUIRE(widen(problem.dq[i]) == 0);
  }
  CHECK(problem.lse[129] == std::numeric_limits<float>::infinity());
  CHECK(std::isfinite(problem.lse[130]));
  for (std::size_t i = 20 * 64; i < 50 * 64; ++i) {
    REQUIRE(widen(problem.dk[i]) == 0);
    REQUIRE(widen(problem.dv[i]) == 0);
  }
  const auto out = problem.out, dq = problem.dq, dk = problem.dk, dv = problem.dv;
  run();
  CHECK(same(out, problem.out));
  CHECK(same(dq, problem.dq));
  CHECK(same(dk, problem.dk));
  CHECK(same(dv, problem.dv));
  for (const bool queries : {false, true}) {
    SoftmaxSizes none = square(5, 64, false);
    (queries ? none.key_length : none.length) = 0;
    Problem<TestType> empty(none);
    DeviceProblem<TestType> device(empty);
    device.forward();
    device.backward();
    for (const auto* zeros : {&empty.out, &empty.dq, &empty.dk, &empty.dv}) {
      for (const auto x : *zeros) REQUIRE(widen(x) == 0);
    }
    for (const float x : empty.lse) REQUIRE(x == std::numeric_limits<float>::infinity());
  }
}

TEMPLATE_TEST_CASE("CUDA softmax: a huge future key changes nothing before it", "", BFloat16, Half,
                   float) {
  NEEDS_DEVICE();
  // Its weights overflow before they are hidden.
  const std::int64_t length = 100, key = 70, width = 64;
  Problem<TestType> problem(square(length, width, true));
  const auto first = [&](const std::vector<TestType>& x) {
    return std::vector<TestType>(x.begin(), x.begin() + key * width);
  };
  const auto run = [&] {
    DeviceProblem<TestType> device(problem);
    device.forward();
    device.backward();
  };
  run();
  const auto out = problem.out, dq = problem.dq;
  for (std::size_t d = 0; d < width; ++d) {
    problem.k[key * width + d] = kernels::test::stored<TestType>(1000);
  }
  run();
  CHECK(same(first(out), first(problem.out)));
  CHECK(same(first(dq), first(problem.dq)));
  CHECK_FALSE(same(out, problem.out));
  for (const auto* gradient : {&problem.dq, &problem.dk, &problem.dv}) {
    CHECK(std::all_of(gradient->begin(), gradient->end(),
                      [](const auto x) { return std::isfinite(widen(x)); }));
  }
}

}  // namespace attnbench::kernels::cuda::test
