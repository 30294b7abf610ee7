// The bias by distance of the softmax on the device against the definition in double.
#include "tests/attention/kernels/cuda/softmax_device.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

struct Band {
  std::int64_t left, right, reach;
};

SoftmaxSizes biased(std::int64_t length, std::int64_t offset, const Band& band, std::int64_t dim,
                    std::int64_t value_dim = 5) {
  SoftmaxSizes sizes;
  sizes.batch = 2;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  sizes.length = length;
  sizes.key_length = length + offset;
  sizes.head_dim = dim;
  sizes.value_dim = value_dim;
  sizes.left = band.left;
  sizes.right = band.right;
  sizes.offset = offset;
  sizes.bias_reach = band.reach;
  sizes.scale = 0.3;
  return sizes;
}

void compare(const SoftmaxSizes& sizes, double spread = 1) {
  CAPTURE(sizes.length, sizes.offset, sizes.left, sizes.right, sizes.bias_reach, sizes.head_dim);
  for (const bool masked : {false, true}) {
    Problem<float> problem(sizes, spread, masked);
    const Expected expected = define(problem);
    for (const Way way : {Way::split, Way::tiles, Way::chosen}) {
      DeviceProblem<float> device(problem);
      device.forward(way);
      CHECK(relative_rms(problem.out, expected.out) < Bars<float>::forward);
      if (way != Way::chosen) continue;
      device.backward();
    }
    CHECK(relative_rms(problem.dv, expected.dv) < Bars<float>::backward);
    if (sizes.left + sizes.right == 0) continue;  // what is left of their gradients is rounding
    CHECK(relative_rms(problem.dq, expected.dq) < Bars<float>::backward);
    CHECK(relative_rms(problem.dk, expected.dk) < Bars<float>::backward);
    CHECK(relative_rms(problem.d_bias, expected.d_bias) < Bars<float>::backward);
  }
}

/// Values alone, in 16 bits: the logarithms of the sums too, which gradients in float32 read.
template <class T>
void compare_values(const SoftmaxSizes& sizes, double spread = 1, const Layout& layout = {}) {
  CAPTURE(sizes.length, sizes.offset, sizes.left, sizes.right, sizes.bias_reach, sizes.head_dim,
          sizes.value_dim, sizes.scale, spread, layout.pad);
  for (const bool masked : {false, true}) {
    Problem<T> problem(sizes, spread, masked);
    const Expected expected = define(problem);
    DeviceProblem<T>(problem, layout).forward();
    CHECK(relative_rms(problem.out, expected.out) < Bars<T>::forward);
    bool near = true;
    for (std::size_t i = 0; i < expected.lse.size(); ++i) {
      const double found = double{problem.lse[i]}, bar = 1e-4 * spread * spread;
      near = near && (found == expected.lse[i] || std::fabs(found - expected.lse[i]) < bar);
    }
    CHECK(near);
  }
}

}  // namespace

TEST_CASE("cuda softmax: a bias by distance, its gradient too") {
  NEEDS_DEVICE();
  for (const Band& band :
       {Band{6, 4, 6}, Band{0, 0, 0}, Band{127, 0, 127}, Band{300, 300, 300}, Band{31, 64, 90}}) {
    for (const std::int64_t length : {3, 32, 67}) compare(biased(length, 0, band, 11));
    compare(biased(67, 5, band, 11));
  }
  compare(biased(40, 3, {20, 20, 20}, 100));
  compare(biased(33, 0, {9, 0, 40}, 256));
}

TEMPLATE_TEST_CASE("cuda softmax: a bias by distance on the tensor cores", "", BFloat16, Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const Band& band :
       {Band{6, 4, 6}, Band{0, 0, 0}, Band{127, 0, 127}, Band{300, 300, 300}, Band{31, 64, 90}}) {
    if (std::is_same_v<T, Half> && band.right == 0) continue;
    for (const std::int64_t length : {3, 67}) compare_values<T>(biased(length, 0, band, 11));
  }
  const auto one_row = [](SoftmaxSizes sizes) {
    sizes.batch = 1;
    sizes.heads = 2;
    return sizes;
  };
  compare_values<T>(one_row(biased(70, 5, {31, 64, 90}, 64, 40)));
  compare_values<T>(one_row(biased(200, 0, {63, 64, 64}, 64, 64)));
  compare_values<T>(one_row(biased(200, 0, {255, 255, 255}, 128, 72)), 5);
  compare_values<T>(one_row(biased(140, 3, {20, 20, 20}, 100, 128)), 1, {true, 0});
  compare_values<T>(one_row(biased(40, 0, {20, 0, 20}, 24, 16)), 1, {false, 3});
  SoftmaxSizes negative = one_row(biased(70, 0, {40, 9, 40}, 16, 16));
  negative.scale = -0.3;
  compare_values<T>(negative);
}

TEST_CASE("cuda softmax: what cannot be done with biases is refused") {
  auto sizes = biased(8, 0, {6, 4, 5}, 8);
  CHECK(softmax_refusal(sizes).find("farther than the biases") != std::string::npos);
  CHECK_THROWS_AS(softmax_forward_bytes<float>(sizes), std::logic_error);
  sizes.bias_reach = 6;
  CHECK(softmax_refusal(sizes).empty());
  CHECK(softmax_biased_in_16_bits(sizes));
  CHECK_THROWS_AS(softmax_backward_bytes<Half>(sizes), std::logic_error);
  sizes.value_dim = 129;
  CHECK_FALSE(softmax_biased_in_16_bits(sizes));
  CHECK_THROWS_AS(softmax_forward_bytes<BFloat16>(sizes), std::logic_error);
}

TEST_CASE("cuda softmax: the biases' gradient is the same bits every time") {
  NEEDS_DEVICE();
  Problem<float> problem(biased(100, 0, {30, 30, 30}, 8));
  DeviceProblem<float> device(problem);
  device.forward();
  device.backward();
  const auto first = problem.d_bias;
  device.backward();
  CHECK(first == problem.d_bias);
}

}  // namespace attnbench::kernels::cuda::test
