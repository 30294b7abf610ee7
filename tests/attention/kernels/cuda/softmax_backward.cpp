#include "attention/kernels/cuda/softmax/softmax.hpp"

#include "tests/attention/kernels/cuda/softmax_device.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

template <class T>
void compare(const SoftmaxSizes& sizes, double spread = 1.0, bool masked = false,
             const Layout& layout = {}) {
  Problem<T> problem(sizes, spread, masked);
  DeviceProblem<T> device(problem, layout);
  device.forward();
  device.backward();
  const Expected expected = define(problem);
  CAPTURE(sizes.batch, sizes.heads, sizes.kv_heads, sizes.length, sizes.key_length, sizes.head_dim,
          sizes.value_dim, sizes.left, sizes.right, sizes.offset, sizes.scale, spread, masked,
          layout.token_major, layout.pad);
  // One visible key leaves no gradient for q and k: what is left of it is rounding.
  if (sizes.left + sizes.right > 0 && sizes.key_length > 1) {
    CHECK(relative_rms(problem.dq, expected.dq) < Bars<T>::backward);
    CHECK(relative_rms(problem.dk, expected.dk) < Bars<T>::backward);
  }
  CHECK(relative_rms(problem.dv, expected.dv) < Bars<T>::backward);
}

}  // namespace

TEMPLATE_TEST_CASE("CUDA softmax gradients: awkward sizes", "", BFloat16, Half, float) {
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
  run(64, 256);
  run(65, 80);
  run(70, 200);
  run(129, 64);
  run(130, 128);
}

TEMPLATE_TEST_CASE("CUDA softmax gradients: windows, masks, grouped heads, unequal lengths", "",
                   BFloat16, Half, float) {
  NEEDS_DEVICE();
  const std::int64_t length = !emulated() ? 331 : std::is_same_v<TestType, BFloat16> ? 139 : 75;
  SoftmaxSizes sizes = square(length, 24, true);
  sizes.heads = 4;
  sizes.value_dim = 40;
  for (const std::int64_t left : {0, 70, 500}) {
    for (const std::int64_t right : {0, 50}) {
      sizes.left = left;
      sizes.right = right;
      compare<TestType>(sizes, 1.0, left == 70);
    }
  }
  sizes.left = SoftmaxSizes::far;
  sizes.right = 0;
  sizes.batch = 2;
  for (const std::int64_t keys : {std::int64_t{1}, std::int64_t{60}, length + 70}) {
    sizes.key_length = keys;
    sizes.offset = keys - sizes.length;
    compare<TestType>(sizes, 1.0, keys == 60);
  }
  sizes.batch = 1;
  sizes.head_dim = 128;
  sizes.value_dim = 43;
  compare<TestType>(sizes, 1.0, true);
}

TEMPLATE_TEST_CASE("CUDA softmax gradients: rows that are not dense, and rows that begin anywhere",
                   "", BFloat16, Half, float) {
  NEEDS_DEVICE();
  SoftmaxSizes sizes = square(emulated() ? 70 : 150, 64, true);
  sizes.batch = 2;
  for (const std::int64_t pad : {0, 8, 3}) compare<TestType>(sizes, 1.0, pad == 3, {pad < 8, pad});
}

TEMPLATE_TEST_CASE("CUDA softmax gradients: sharp logits, and a scale below 0", "", BFloat16, Half,
                   float) {
  NEEDS_DEVICE();
  SoftmaxSizes sizes = square(100, 64, true);
  compare<TestType>(sizes, 2.0);
  sizes.scale = -sizes.scale;
  compare<TestType>(sizes);
}

TEMPLATE_TEST_CASE(
    "CUDA softmax gradients: queries without keys, keys without queries, the same "
    "bits twice",
    "", BFloat16, Half, float) {
  NEEDS_DEVICE();
  SoftmaxSizes sizes = square(300, 64, true);
  sizes.key_length = 150;
  sizes.offset = -200;
  Problem<TestType> problem(sizes);
  const auto run = [&] {
    DeviceProblem<TestType> device(problem);
    device.forward();
    device.backward();
  };
  run();
  for (std::size_t i = 0; i < 200 * 64; ++i) REQUIRE(widen(problem.dq[i]) == 0);
  for (std::size_t i = 100 * 64; i < 150 * 64; ++i) {
    REQUIRE(widen(problem.dk[i]) == 0);
    REQUIRE(widen(problem.dv[i]) == 0);
  }
  const auto same = [](const std::vector<TestType>& a, const std::vector<TestType>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(TestType)) == 0;
  };
  const auto dq = problem.dq, dk = problem.dk, dv = problem.dv;
  run();
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
    for (const auto x : empty.dq) REQUIRE(widen(x) == 0);
    for (const auto x : empty.dk) REQUIRE(widen(x) == 0);
    for (const auto x : empty.dv) REQUIRE(widen(x) == 0);
  }
}

TEMPLATE_TEST_CASE("CUDA softmax gradients: a huge future key changes nothing before it", "",
                   BFloat16, Half, float) {
  NEEDS_DEVICE();
  // Its weights overflow before they are hidden.
  const std::int64_t length = 100, key = 70, width = 64;
  Problem<TestType> problem(square(length, width, true));
  const auto first = [&] {
    DeviceProblem<TestType> device(problem);
    device.forward();
    device.backward();
    std::vector<float> dq;
    for (std::int64_t i = 0; i < key * width; ++i) {
      dq.push_back(widen(problem.dq[static_cast<std::size_t>(i)]));
    }
    return dq;
  };
  const auto before = first();
  for (std::size_t d = 0; d < width; ++d) {
    problem.k[key * width + d] = kernels::test::stored<TestType>(1000);
  }
  CHECK(first() == before);
  for (const auto* gradient : {&problem.dq, &problem.dk, &problem.dv}) {
    CHECK(std::all_of(gradient->begin(), gradient->end(),
                      [](const auto x) { return std::isfinite(widen(x)); }));
  }
}

}  // namespace attnbench::kernels::cuda::test
