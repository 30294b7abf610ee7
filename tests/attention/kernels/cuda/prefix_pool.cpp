#include "attention/kernels/cuda/recurrent/prefix_pool.hpp"

#include "tests/attention/kernels/cuda/recurrent_device.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

using kernels::test::blind;
using kernels::test::of;
using kernels::test::pool_kinds;

template <class T>
struct DevicePool {
  static constexpr bool by_chunks = std::is_same_v<T, BFloat16>;
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

/// Token by token, which takes the emulator long.
template <class T>
constexpr bool slow = emulated && !DevicePool<T>::by_chunks;

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

template <class T>
void compare(const Shape& shape, const PrefixPoolSizes& kind) {
  CAPTURE(shape.length, shape.latents, shape.value_dim, shape.batch, shape.heads, shape.spread,
          shape.masked, static_cast<int>(kind.query), kind.scale);
  const Problem<T> problem(Numbers<T>(shape, kind));
  CHECK(problem.sample(problem.forward()).error() < bar<T>);
}

}  // namespace

TEMPLATE_TEST_CASE("cuda prefix pool: values at awkward sizes", "", float, BFloat16, Half) {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    for (const std::int64_t length : {1, 3, 63, 64, 65, 257}) {
      if (slow<TestType> && length > 65) continue;
      compare<TestType>({length, 43, 43, 1, emulated ? 1 : 2}, of(kind));
    }
    const std::int64_t length = slow<TestType> ? 20 : 130;
    for (const std::int64_t latents : {1, 16, 64, 80, 128, 256, 300}) {
      compare<TestType>({latents > 256 ? 20 : length, latents, slow<TestType> ? 33 : 64, 1, 1},
                        of(kind, 0.4));
    }
    for (const std::int64_t value_dim : {1, 8, 32, 80, 128, 200, 256}) {
      if (slow<TestType> && value_dim > 80) continue;
      compare<TestType>({length, 64, value_dim, 1, 1}, of(kind, -1));
    }
    compare<TestType>({length, 24, 24, 1, 2}, of(kind));
  }
}

TEST_CASE("cuda prefix pool: long sequences, few heads and many") {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    compare<BFloat16>({600, 64, 64, 1, 1}, of(kind));  // few segments
    if (!emulated || kind == PoolQuery::logits) {
      compare<BFloat16>({emulated ? 1500 : 3000, 128, 64, 1, 1}, of(kind));  // many
      compare<BFloat16>({emulated ? 1500 : 3000, 32, 32, 1, 1, 1, true}, of(kind));
      compare<BFloat16>({70, 64, 64, 12, 12}, of(kind));  // none
      compare<Half>({600, 24, 16, 1, 1}, of(kind));       // token by token
    }
  }
}

TEMPLATE_TEST_CASE("cuda prefix pool: gradients", "", float, BFloat16, Half) {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    for (const Shape& shape :
         {Shape{1, 7, 5, 1, 2}, Shape{37, 7, 43, 1, 2}, Shape{35, 20, 24, 2, 1, 1, true},
          Shape{18, 70, 5, 1, 1}, Shape{18, 130, 3, 1, 1}, Shape{18, 3, 130, 1, 1},
          Shape{40, 8, 6, 1, 1, 15}}) {
      CAPTURE(shape.length, shape.latents, shape.value_dim, shape.spread, static_cast<int>(kind));
      const Problem<TestType> problem(Numbers<TestType>(shape, of(kind, 0.7)));
      CHECK(problem.gradient_error() < (gradient_bar_at<DevicePool, TestType>(shape)));
    }
  }
}

TEST_CASE("cuda prefix pool: gradients by chunks") {
  NEEDS_DEVICE();
  check_ways<DevicePool, kernels::test::Pool>(of(PoolQuery::logits));
  for (const PoolQuery kind : pool_kinds) {
    for (const Shape& shape : gradient_shapes) {
      CAPTURE(shape.length, shape.latents, shape.value_dim, static_cast<int>(kind));
      const Problem<BFloat16> problem(Numbers<BFloat16>(shape, of(kind, 0.7)));
      CHECK(problem.gradient_error() < bar<BFloat16>);
    }
  }
}

TEST_CASE("cuda prefix pool: gradients where tokens are hidden, the same bits each time") {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    check_hidden_gradients<DevicePool>(Numbers<BFloat16>(hidden_shape, of(kind)));
  }
}

TEMPLATE_TEST_CASE("cuda prefix pool: hidden tokens are as if they were not there", "", float,
                   BFloat16, Half) {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    for (const std::int64_t width : {20, 64}) {
      if (slow<TestType> && width > 20) continue;
      check_hidden_tokens<DevicePool>(
          Numbers<TestType>({131, width, width, 2, 1, 1, true}, of(kind)));
    }
  }
}

TEMPLATE_TEST_CASE("cuda prefix pool: scores that rise without end stay right", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    for (const double grad : {30.0, -30.0, 2.0}) {
      for (const std::int64_t latents : {4, 64}) {
        if (emulated && latents > 4 && (slow<T> || grad > 0)) continue;
        CAPTURE(static_cast<int>(kind), grad, latents);
        Numbers<T> numbers({100, latents, 24, 1, emulated ? 1 : 2}, of(kind));
        tilt(numbers, grad);
        const Problem<T> problem(numbers);
        CHECK(problem.sample(problem.forward()).error() < std::max(bar<T>, 2e-4));
      }
    }
    Numbers<T> numbers({140, 8, 24, 1, 2, 15}, of(kind));
    if (kind == PoolQuery::weights) numbers.query = Numbers<T>({140, 8, 24, 1, 2}, of(kind)).query;
    const Problem<T> problem(numbers);
    CHECK(problem.sample(problem.forward()).error() < std::max(bar<T>, 2e-4));
  }
}

TEST_CASE("cuda prefix pool: gradients of scores that rise without end stay right") {
  NEEDS_DEVICE();
  for (const PoolQuery kind : pool_kinds) {
    for (const double grad : {30.0, -30.0, 2.0}) {
      for (const std::int64_t latents : {4, 64}) {
        if (emulated && latents > 4 && kind != PoolQuery::logits) continue;
        CAPTURE(static_cast<int>(kind), grad, latents);
        Numbers<BFloat16> numbers({150, latents, 24, 1, 1}, of(kind));
        tilt(numbers, grad);
        // Where one token outweighs all others, what it adds to its own gradient by its weight and
        // by the normaliser cancel, but for their rounding.
        const Problem<BFloat16> problem(numbers);
        CHECK(problem.gradient_error(problem.gradients(), true) < bar<BFloat16>);
      }
    }
  }
}

TEMPLATE_TEST_CASE("cuda prefix pool: latents that have seen nothing count in a softmax", "", float,
                   BFloat16, Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    for (const std::int64_t latents : {5, 70}) {
      for (const bool masked : {false, true}) {
        const bool most = kind == PoolQuery::logits && !slow<T> && masked;
        if (emulated && !most && (latents > 5 || kind != PoolQuery::logits)) continue;
        CAPTURE(static_cast<int>(kind), latents, masked);
        Numbers<T> numbers({150, latents, 24, 1, 1, 1, masked}, of(kind));
        blind(numbers);
        const Problem<T> problem(numbers);
        CHECK(problem.sample(problem.forward()).error() < bar<T>);
        CHECK(problem.gradient_error() < (gradient_bar_at<DevicePool, T>(problem.problem.shape)));
      }
    }
  }
}

TEMPLATE_TEST_CASE("cuda prefix pool: pieces from a carry give the whole", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const PoolQuery kind : pool_kinds) {
    for (const Shape& shape : shapes_in_pieces) {
      if (slow<T> && (shape.latents > 7 || kind == PoolQuery::weights)) continue;
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

TEST_CASE("cuda prefix pool: the same bits each time") {
  NEEDS_DEVICE();
  const Problem<BFloat16> problem(Numbers<BFloat16>({700, 64, 64, 1, 3}, of(PoolQuery::logits)));
  const std::vector<BFloat16> first = problem.forward(), second = problem.forward();
  bool same = true;
  for (std::size_t i = 0; i < first.size(); ++i) same = same && first[i].bits == second[i].bits;
  CHECK(same);
}

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
