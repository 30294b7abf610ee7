#include "attention/kernels/cuda/recurrent/prefix_pool.hpp"

#include "tests/attention/kernels/cuda/recurrent_device.hpp"
#ifdef ATTNBENCH_EMULATED
#include "tests/attention/kernels/cuda/emulator/launching.hpp"
#endif

namespace attnbench::kernels::cuda::test {
namespace {

using kernels::test::blind;
using kernels::test::of;
using kernels::test::pool_kinds;

template <class T>
struct DevicePool {
  static std::size_t forward_bytes(const PrefixPoolSizes& sizes) {
    return prefix_pool_forward_bytes<T>(sizes);
  }
  static void forward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                      Stream stream, void* space, std::size_t bytes) {
    prefix_pool_forward(sizes, arguments, stream, space, bytes);
  }
  static std::size_t backward_bytes(const PrefixPoolSizes& sizes) {
    return prefix_pool_backward_bytes<T>(sizes);
  }
  static void backward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                       const Rows<const T>& d_out, const Rows<T>& d_query, const Rows<T>& d_scores,
                       const Rows<T>& d_values, void* space, std::size_t bytes) {
    prefix_pool_backward(sizes, arguments, {d_out, d_query, d_scores, d_values}, {}, space, bytes);
    synchronize();
  }
};

template <class T>
using Problem = OnDevice<DevicePool, kernels::test::Pool, T>;
template <class T>
using Numbers = Recurrent<kernels::test::Pool, T>;

/// Adds scores that rise or fall by `grad` a token to those of every third latent or so, and one
/// that outweighs all.
template <class T>
void tilt(Numbers<T>& numbers, double grad) {
  const auto length = static_cast<std::size_t>(numbers.shape.length);
  const auto latents = static_cast<std::size_t>(numbers.shape.latents);
  for (std::size_t i = 0; i < numbers.key.size(); i += 3) {
    const auto t = static_cast<double>(i / latents % length);
    numbers.key[i] = kernels::test::stored<T>(double{widen(numbers.key[i])} + grad * t);
  }
  numbers.key[40] = kernels::test::stored<T>(1000);
}

}  // namespace

TEMPLATE_TEST_CASE("cuda prefix pool: values and gradients at odd sizes", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    CAPTURE(static_cast<int>(kind));
    for (const Shape& shape : odd_shapes<TestType>(kind != PoolQuery::logits)) {
      compare<DevicePool>(Numbers<TestType>(shape, of(kind, shape.latents > 40 ? -1 : 0.7)));
    }
    compare<DevicePool>(Numbers<TestType>({40, 8, 6, 1, 1, 15}, of(kind, 0.7)));
  }
}

TEMPLATE_TEST_CASE("cuda prefix pool: hidden tokens are as if they were not there", "", float,
                   BFloat16, Half) {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    if (kind == PoolQuery::weights) continue;
    check_hidden_tokens<DevicePool>(Numbers<TestType>({70, 20, 24, 2, 1, 1, true}, of(kind)));
  }
}

TEMPLATE_TEST_CASE("cuda prefix pool: scores that rise without end stay right", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    for (const double grad : {30.0, -30.0, 2.0}) {
      CAPTURE(static_cast<int>(kind), grad);
      // A rise by 30 leaves chunks of two tokens, which takes the emulator long.
      Numbers<T> numbers({grad == 30 ? 24 : 40, 4, 24, 1, 1}, of(kind));
      tilt(numbers, grad);
      const Problem<T> problem(numbers);
      CHECK(problem.sample(problem.forward()).error() < std::max(bar<T>, 2e-4));
      // Where one token outweighs all others, what it adds to its own gradient by its weight and
      // by the normaliser cancel, but for their rounding.
      CHECK(problem.gradient_error(problem.gradients(), true) < std::max(gradient_bar<T>, 2e-4));
    }
  }
}

TEMPLATE_TEST_CASE("cuda prefix pool: latents that have seen nothing count in a softmax", "", float,
                   BFloat16, Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    for (const bool masked : {false, true}) {
      if (masked && kind != PoolQuery::logits) continue;
      CAPTURE(static_cast<int>(kind), masked);
      Numbers<T> numbers({100, 5, 24, 1, 1, 1, masked}, of(kind));
      blind(numbers);
      compare<DevicePool>(numbers);
    }
  }
}

TEMPLATE_TEST_CASE("cuda prefix pool: pieces from a carry give the whole", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    for (const Shape& shape : shapes_in_pieces<T>()) {
      if (kind != PoolQuery::logits && shape.latents > 7) continue;
      const Problem<T> whole(Numbers<T>(shape, of(kind)));
      const std::size_t rows = static_cast<std::size_t>(shape.batch * shape.heads * shape.latents);
      DeviceArray<float> maximum(std::vector<float>(rows, -INFINITY));
      DeviceArray<float> normaliser{std::vector<float>(rows)};
      DeviceArray<float> sum(std::vector<float>(rows * static_cast<std::size_t>(shape.value_dim)));
      const auto out = whole.forward_in_pieces(pieces, [&](auto& arguments) {
        arguments.carry = {maximum.data(), normaliser.data(), sum.data()};
      });
      CAPTURE(shape.latents, shape.value_dim, static_cast<int>(kind));
      CHECK(whole.sample(out).error() < bar<T>);
    }
  }
}

#ifdef ATTNBENCH_EMULATED

TEST_CASE("cuda prefix pool: token by token where blocks have no room for a chunk") {
  const emulated::SmallCard small;
  compare<DevicePool>(Numbers<BFloat16>({40, 9, 100, 1, 1}, of(PoolQuery::logits)));
}

#endif

TEST_CASE("cuda prefix pool: what cannot be done is refused with the reason") {
  PrefixPoolSizes sizes;
  sizes.length = 8;
  sizes.latents = 513;
  sizes.value_dim = 8;
  CHECK(prefix_pool_refusal(sizes).find("512 latents") != std::string::npos);
  CHECK_THROWS_AS(prefix_pool_forward_bytes<BFloat16>(sizes), std::logic_error);
  sizes.latents = 512;
  CHECK(prefix_pool_refusal(sizes).empty());
  sizes.value_dim = 513;
  CHECK(prefix_pool_refusal(sizes).empty());
  CHECK(prefix_pool_backward_refusal(sizes).find("512 columns") != std::string::npos);
}

}  // namespace attnbench::kernels::cuda::test
