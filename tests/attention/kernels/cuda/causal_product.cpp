#include "attention/kernels/cuda/recurrent/causal_product.hpp"

#include "tests/attention/kernels/cuda/recurrent_device.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

using kernels::test::decaying;
using kernels::test::linear;
using kernels::test::product_kinds;
using kernels::test::relative_rms;

template <class T>
struct DeviceProduct {
  static constexpr bool by_chunks = !std::is_same_v<T, float>;
  static std::size_t forward_bytes(const CausalProductSizes& sizes) {
    return causal_product_forward_bytes<T>(sizes);
  }
  static void forward(const CausalProductSizes& sizes, const CausalProductArguments<T>& arguments,
                      Stream stream, void* space, std::size_t bytes) {
    causal_product_forward(sizes, arguments, stream, space, bytes);
  }
  static std::size_t backward_bytes(const CausalProductSizes& sizes) {
    return causal_product_backward_bytes<T>(sizes);
  }
  static void backward(const CausalProductSizes& sizes, const CausalProductArguments<T>& arguments,
                       const Rows<const T>& d_out, const Rows<T>& d_query, const Rows<T>& d_key,
                       const Rows<T>& d_values, void* space, std::size_t bytes) {
    causal_product_backward(sizes, arguments, {d_out, d_query, d_key, d_values}, {}, space, bytes);
    synchronize();
  }
};

template <class T>
using Problem = OnDevice<DeviceProduct, kernels::test::Product, T>;
template <class T>
using Numbers = Recurrent<kernels::test::Product, T>;

template <class T>
void compare(const Shape& shape, const CausalProductSizes& kind) {
  CAPTURE(shape.length, shape.latents, shape.value_dim, shape.batch, shape.heads, shape.spread,
          shape.masked, static_cast<int>(kind.feature), kind.normalised);
  const Problem<T> problem(Numbers<T>(shape, kind));
  CHECK(problem.sample(problem.forward()).error() < bar<T>);
}

}  // namespace

TEMPLATE_TEST_CASE("cuda causal product: values at awkward sizes", "", float, BFloat16, Half) {
  NEEDS_DEVICE();
  constexpr bool slow = emulated && std::is_same_v<TestType, float>;
  constexpr std::int64_t heads = emulated ? 1 : 2;
  for (const CausalProductSizes& kind : product_kinds()) {
    for (const std::int64_t length : {1, 3, 63, 64, 65, 257}) {
      if (slow && length > 65) continue;
      compare<TestType>({length, 43, 43, heads, heads}, kind);
    }
    const std::int64_t length = slow ? 20 : 130;
    for (const std::int64_t latents : {1, 16, 64, 80, 128, 256, 300}) {
      compare<TestType>({latents > 256 ? 20 : length, latents, slow ? 33 : 64, 1, heads}, kind);
    }
    for (const std::int64_t value_dim : {1, 8, 32, 80, 128, 200, 256}) {
      if (slow && value_dim > 80) continue;
      compare<TestType>({length, 64, value_dim, 1, heads}, kind);
    }
    compare<TestType>({length, 24, 24, 1, 2}, kind);
  }
}

TEMPLATE_TEST_CASE("cuda causal product: long sequences, few heads and many", "", BFloat16, Half) {
  NEEDS_DEVICE();
  for (const CausalProductSizes& kind : product_kinds()) {
    compare<TestType>({600, 64, 64, 1, 1}, kind);  // few segments
    if (emulated && kind.normalised != std::is_same_v<TestType, Half>) continue;
    compare<TestType>({emulated ? 1500 : 3000, 128, 60, 1, 1}, kind);  // many
    compare<TestType>({emulated ? 1500 : 3000, 32, 32, 1, 1, 1, true}, kind);
    compare<TestType>({70, 64, 64, 12, 12}, kind);  // none
  }
}

TEMPLATE_TEST_CASE("cuda causal product: gradients", "", float, BFloat16, Half) {
  NEEDS_DEVICE();
  for (const CausalProductSizes& kind : product_kinds()) {
    for (const Shape& shape :
         {Shape{1, 7, 5, 1, 2}, Shape{37, 7, 43, 1, 2}, Shape{35, 20, 24, 2, 1, 1, true},
          Shape{18, 70, 5, 1, 1}, Shape{18, 130, 3, 1, 1}, Shape{18, 3, 130, 1, 1}}) {
      CAPTURE(shape.length, shape.latents, shape.value_dim, static_cast<int>(kind.feature),
              kind.normalised);
      CHECK(Problem<TestType>(Numbers<TestType>(shape, kind)).gradient_error() <
            (gradient_bar_at<DeviceProduct, TestType>(shape)));
    }
  }
}

TEST_CASE("cuda causal product: a decay that each token gives, in fp32") {
  NEEDS_DEVICE();
  for (const Shape& shape :
       {Shape{1, 7, 5, 1, 2}, Shape{100, 43, 43, 1, 2}, Shape{35, 20, 24, 2, 1, 1, true},
        Shape{95, 70, 5, 1, 1}, Shape{18, 300, 3, 1, 1}}) {
    CAPTURE(shape.length, shape.latents, shape.value_dim);
    compare<float>(shape, decaying());
    CHECK(Problem<float>(Numbers<float>(shape, decaying())).gradient_error() < gradient_bar<float>);
  }
}

TEST_CASE("cuda causal product: a decay in steps and pieces from a memory gives the whole") {
  NEEDS_DEVICE();
  const Shape shape{96, 20, 32, 1, 2};
  const Problem<float> problem(Numbers<float>(shape, decaying()));
  DeviceArray<float> memory(std::vector<float>(2 * 20 * 32, 0.F));
  const auto out = problem.forward_in_pieces(
      {1, 1, 17, 1, 70, 1, 5}, [&](auto& arguments) { arguments.memory = memory.data(); });
  CHECK(relative_rms(out, problem.problem.define()) < bar<float>);
}

TEST_CASE("cuda causal product: a decay of 16-bit numbers is refused") {
  NEEDS_DEVICE();
  CHECK_THROWS_AS(causal_product_forward_bytes<BFloat16>(decaying()), std::logic_error);
  CHECK_THROWS_AS(causal_product_backward_bytes<Half>(decaying()), std::logic_error);
}

TEST_CASE("cuda causal product: which gradients are by chunks") {
  NEEDS_DEVICE();
  check_ways<DeviceProduct, kernels::test::Product>(linear());
}

TEMPLATE_TEST_CASE("cuda causal product: gradients by chunks", "", BFloat16, Half) {
  NEEDS_DEVICE();
  for (const CausalProductSizes& kind : product_kinds()) {
    for (const Shape& shape : gradient_shapes) {
      CAPTURE(shape.length, shape.latents, shape.value_dim, static_cast<int>(kind.feature),
              kind.normalised);
      CHECK(Problem<TestType>(Numbers<TestType>(shape, kind)).gradient_error() < bar<TestType>);
    }
  }
}

TEMPLATE_TEST_CASE(
    "cuda causal product: gradients where tokens are hidden, the same bits each time", "", BFloat16,
    Half) {
  NEEDS_DEVICE();
  check_hidden_gradients<DeviceProduct>(Numbers<TestType>(hidden_shape, linear()));
}

TEST_CASE("cuda causal product: gradients whose parts leave the range of fp16") {
  NEEDS_DEVICE();
  const auto change = [](std::vector<Half>& x, auto&& f) {
    for (std::size_t i = 0; i < x.size(); ++i) narrow(f(i, widen(x[i])), x[i]);
  };
  const auto check = [](const std::string& what, const Numbers<Half>& numbers) {
    CAPTURE(what, numbers.shape.latents);
    const Problem<Half> problem(numbers);
    CHECK(problem.gradient_error() < bar<Half>);
  };
  for (const std::int64_t width : {24, 100}) {
    const auto row = static_cast<std::size_t>(width);
    const Numbers<Half> plain({200, width, width, 1, 1}, linear());
    Numbers<Half> x = plain;
    change(x.d_out, [](std::size_t, float g) { return 4000 * g; });
    check("large gradients of results", x);
    change(x.values, [](std::size_t, float v) { return 100 + 1000 * v; });
    change(x.d_out, [](std::size_t, float g) { return g / 32000; });
    check("large values, small gradients of results", x);
    x = plain;
    change(x.d_out, [&](std::size_t i, float g) {
      return std::ldexp(g, static_cast<int>(i / row % 19) - 9);
    });
    check("gradients of results that change from token to token", x);
    for (const float grad : {30.F, -30.F}) {
      for (const bool of_keys : {false, true}) {
        x = plain;
        // Not of the same latents all the time: what rises alike cancels in dLoss/dquery.
        change(of_keys ? x.key : x.query, [&](std::size_t i, float k) {
          return (i / row + i % row) % 3 == 0 ? k + grad * static_cast<float>(i / row) : k;
        });
        check((grad > 0 ? "a rise of " : "a fall of ") + std::string(of_keys ? "keys" : "queries"),
              x);
      }
    }
    x = Numbers<Half>({200, width, width, 1, 1}, CausalProductSizes{});
    change(x.query, [](std::size_t, float q) { return q / 512; });
    change(x.key, [](std::size_t, float k) { return k / 512; });
    change(x.values, [](std::size_t, float v) { return 200 + v; });
    change(x.d_out, [](std::size_t, float g) { return 20 + g; });
    check("features without a bound", x);
  }
}

TEMPLATE_TEST_CASE("cuda causal product: hidden tokens are as if they were not there", "", float,
                   BFloat16, Half) {
  NEEDS_DEVICE();
  for (const CausalProductSizes& kind : product_kinds()) {
    for (const std::int64_t width : {20, 64}) {
      if (emulated && std::is_same_v<TestType, float> && width > 20) continue;
      check_hidden_tokens<DeviceProduct>(
          Numbers<TestType>({131, width, width, 2, 1, 1, true}, kind));
    }
  }
}

TEMPLATE_TEST_CASE("cuda causal product: pieces from a memory give the whole", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const CausalProductSizes& kind : product_kinds()) {
    for (const Shape& shape : shapes_in_pieces) {
      if (emulated && std::is_same_v<T, float> && (shape.latents > 7 || kind.normalised)) continue;
      const Problem<T> whole(Numbers<T>(shape, kind));
      const std::size_t rows = static_cast<std::size_t>(shape.batch * shape.heads * shape.latents);
      DeviceArray<float> memory(
          std::vector<float>(rows * static_cast<std::size_t>(shape.value_dim)));
      DeviceArray<float> total{std::vector<float>(rows)};
      const auto out = whole.forward_in_pieces(pieces, [&](auto& arguments) {
        arguments.memory = memory.data();
        if (kind.normalised) arguments.total = total.data();
      });
      CAPTURE(shape.latents, shape.value_dim, static_cast<int>(kind.feature), kind.normalised);
      CHECK(whole.sample(out).error() < bar<T>);
    }
  }
}

TEST_CASE("cuda causal product: the same bits each time, and in a graph") {
  NEEDS_DEVICE();
  const Problem<BFloat16> problem(Numbers<BFloat16>({700, 64, 64, 1, 3}, linear()));
  const std::vector<BFloat16> first = problem.forward(), second = problem.forward();
  const auto bits = [](const std::vector<BFloat16>& x) {
    std::vector<std::uint16_t> y;
    for (const BFloat16& value : x) y.push_back(value.bits);
    return y;
  };
  CHECK(bits(first) == bits(second));
  const OwnedStream stream;
  DeviceArray<BFloat16> out(first.size());
  auto a = problem.arguments();
  a.out = out.rows(3, 700, 64);
  const std::size_t bytes = causal_product_forward_bytes<BFloat16>(problem.problem.sizes);
  const DeviceArray<unsigned char> space(bytes);
  const Graph graph(stream, [&] {
    causal_product_forward(problem.problem.sizes, a, stream, space.data(), bytes);
  });
  graph.launch(stream);
  synchronize(stream);
  CHECK(bits(out.values()) == bits(first));
}

TEST_CASE("cuda causal product: sums beyond the range of fp16 are no harm") {
  NEEDS_DEVICE();
  Numbers<Half> numbers({1100, 64, 64, 1, 1}, linear());
  for (Half& x : numbers.values) narrow(100 + widen(x), x);
  const Problem<Half> problem(numbers);
  CHECK(problem.sample(problem.forward()).error() < bar<Half>);
}

TEST_CASE("cuda causal product: what cannot be done is refused with the reason") {
  CausalProductSizes sizes;
  sizes.length = 8;
  sizes.features = 513;
  sizes.value_dim = 8;
  CHECK(causal_product_refusal(sizes).find("512 features") != std::string::npos);
  CHECK_THROWS_AS(causal_product_forward_bytes<BFloat16>(sizes), std::logic_error);
  sizes.features = 512;
  CHECK(causal_product_refusal(sizes).empty());
  sizes.value_dim = 513;
  CHECK(causal_product_refusal(sizes).empty());
  CHECK(causal_product_backward_refusal(sizes).find("512 columns") != std::string::npos);
}

}  // namespace attnbench::kernels::cuda::test
