// Every kernel finds its way where blocks have less shared memory than on Hopper. The emulator
// refuses a launch that asks for more than the card has.
#include "attention/kernels/cuda/recurrent/causal_product.hpp"
#include "attention/kernels/cuda/recurrent/prefix_pool.hpp"
#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/cuda/emulator/launching.hpp"
#include "tests/attention/kernels/cuda/recurrent_device.hpp"
#include "tests/attention/kernels/cuda/lavo_device.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

using emulated::SmallCard;

/// Where tiles no longer have room: token by token, with the same results.
template <template <class> class Family, class T, class Forward>
void compare_recurrent(const Shape& shape, const typename Family<T>::Sizes& kind,
                       const Forward& forward) {
  Recurrent<Family, T> problem(shape, kind);
  const DeviceArray<T> query(problem.query), key(problem.key), values(problem.values);
  DeviceArray<T> out(problem.out.size());
  typename Family<T>::Arguments a;
  const auto rows = [&](const DeviceArray<T>& x, std::int64_t width) {
    return x.template rows<const T>(shape.heads, shape.length, width);
  };
  Family<T>::set_inputs(a, rows(query, shape.latents), rows(key, shape.latents),
                        rows(values, shape.value_dim));
  a.out = out.rows(shape.heads, shape.length, shape.value_dim);
  forward(problem.sizes, a);
  CAPTURE(shape.latents, shape.value_dim);
  CHECK(kernels::test::relative_rms(out.values(), problem.define()) < bar<BFloat16>);
}

}  // namespace

TEST_CASE("a small card: recurrent families whose tiles have no room there") {
  const SmallCard small;
  for (const std::int64_t latents : {128, 200}) {
    const Shape shape{40, latents, 40, 1, 1};
    compare_recurrent<kernels::test::Pool, BFloat16>(
        shape, kernels::test::of(PoolQuery::logits), [](const auto& sizes, const auto& a) {
          const std::size_t bytes = prefix_pool_forward_bytes<BFloat16>(sizes);
          const DeviceArray<unsigned char> space(bytes);
          prefix_pool_forward(sizes, a, {}, space.data(), bytes);
        });
    compare_recurrent<kernels::test::Product, BFloat16>(
        shape, kernels::test::linear(), [](const auto& sizes, const auto& a) {
          const std::size_t bytes = causal_product_forward_bytes<BFloat16>(sizes);
          const DeviceArray<unsigned char> space(bytes);
          causal_product_forward(sizes, a, {}, space.data(), bytes);
        });
  }
}

TEST_CASE("a small card: the running memory with many bases and wide heads") {
  const SmallCard small;
  for (const auto& [bases, dim] : {std::pair{256, 256}, std::pair{128, 128}, std::pair{130, 200}}) {
    auto sizes = sized(11, bases, dim, 1);
    sizes.batch = 1;
    CAPTURE(bases, dim);
    const MemoryOnDevice<BFloat16> device(kernels::test::MemoryProblem<BFloat16>(sizes, 1, true));
    CHECK(kernels::test::relative_rms(device.forward(), device.problem.define()) <
          kernels::test::Bars<BFloat16>::forward);
    auto found = device.problem;
    device.backward(found);
    auto exact = device.problem.widened();
    exact.backward(1);
    const double error =
        kernels::test::gradient_error(found.d_tokens, exact.d_tokens, exact.d_bases);
    CHECK(error < kernels::test::Bars<BFloat16>::backward);
  }
}

}  // namespace attnbench::kernels::cuda::test
