// The bias by distance of the softmax on the device against the definition in double.
#include "tests/attention/kernels/cuda/softmax_device.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

struct Band {
  std::int64_t left, right, reach;
};

SoftmaxSizes biased(std::int64_t length, std::int64_t offset, const Band& band, std::int64_t dim) {
  SoftmaxSizes sizes;
  sizes.batch = 2;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  sizes.length = length;
  sizes.key_length = length + offset;
  sizes.head_dim = dim;
  sizes.value_dim = 5;
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

TEST_CASE("cuda softmax: biases are refused where they do not reach, and in 16 bits") {
  auto sizes = biased(8, 0, {6, 4, 5}, 8);
  CHECK(softmax_refusal(sizes).find("farther than the biases") != std::string::npos);
  CHECK_THROWS_AS(softmax_forward_bytes<float>(sizes), std::logic_error);
  sizes.bias_reach = 6;
  CHECK(softmax_refusal(sizes).empty());
  CHECK_THROWS_AS(softmax_forward_bytes<BFloat16>(sizes), std::logic_error);
  CHECK_THROWS_AS(softmax_backward_bytes<Half>(sizes), std::logic_error);
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
