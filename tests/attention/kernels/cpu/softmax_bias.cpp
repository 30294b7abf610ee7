// The bias by distance of the tiled softmax against the definition in double.
#include "attention/kernels/cpu/simd/simd.hpp"
#include "attention/kernels/softmax.hpp"
#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/softmax_problem.hpp"

namespace attnbench::kernels::test {
namespace {

struct Band {
  std::int64_t left, right, reach;
};

SoftmaxSizes biased(std::int64_t length, std::int64_t offset, const Band& band) {
  SoftmaxSizes sizes;
  sizes.batch = 2;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  sizes.length = length;
  sizes.key_length = length + offset;
  sizes.head_dim = 11;
  sizes.value_dim = 5;
  sizes.left = band.left;
  sizes.right = band.right;
  sizes.offset = offset;
  sizes.bias_reach = band.reach;
  sizes.scale = 0.3;
  return sizes;
}

template <class T>
void compare(const SoftmaxSizes& sizes) {
  CAPTURE(sizes.length, sizes.offset, sizes.left, sizes.right, sizes.bias_reach);
  for (const bool masked : {false, true}) {
    Problem<T> problem(sizes, 1, masked);
    problem.forward(3);
    problem.backward(3);
    const Expected expected = define(problem);
    CHECK(relative_rms(problem.out, expected.out) < Bars<T>::forward);
    CHECK(relative_rms(problem.dv, expected.dv) < Bars<T>::backward);
    if (sizes.left + sizes.right == 0) continue;  // what is left of their gradients is rounding
    CHECK(relative_rms(problem.dq, expected.dq) < Bars<T>::backward);
    CHECK(relative_rms(problem.dk, expected.dk) < Bars<T>::backward);
    CHECK(relative_rms(problem.d_bias, expected.d_bias) < Bars<T>::backward);
  }
}

}  // namespace

TEST_CASE("kernels softmax: a bias by distance, its gradient too") {
  for (const Band& band :
       {Band{6, 4, 6}, Band{0, 0, 0}, Band{127, 0, 127}, Band{300, 300, 300}, Band{63, 64, 90}}) {
    for (const std::int64_t length : {3, 64, 67, 301}) {
      for (const std::int64_t offset : {0, 5}) {
        const SoftmaxSizes sizes = biased(length, offset, band);
        compare<float>(sizes);
        compare<double>(sizes);
      }
    }
    compare<BFloat16>(biased(301, 0, band));
  }
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    compare<float>(biased(150, 2, {40, 7, 40}));
    compare<double>(biased(150, 2, {40, 7, 40}));
  }
}

TEST_CASE("kernels softmax: the biases' gradient is the same bits every time") {
  Problem<float> problem(biased(500, 0, {30, 30, 30}));
  problem.forward(3);
  problem.backward(3);
  const auto first = problem.d_bias;
  problem.backward(3);
  CHECK(first == problem.d_bias);
}

}  // namespace attnbench::kernels::test
