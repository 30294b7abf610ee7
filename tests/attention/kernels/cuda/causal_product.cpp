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

}  // namespace

TEMPLATE_TEST_CASE("cuda causal product: values and gradients at odd sizes", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  for (const CausalProductSizes& kind : product_kinds()) {
    CAPTURE(static_cast<int>(kind.feature), kind.normalised);
    for (const Shape& shape : odd_shapes<TestType>(!kind.normalised)) {
      compare<DeviceProduct>(Numbers<TestType>(shape, kind));
    }
  }
}

TEST_CASE("cuda causal product: a decay that each token gives, in fp32") {
  NEEDS_DEVICE();
  for (const Shape& shape : {Shape{1, 7, 5, 1, 2}, Shape{95, 20, 43, 2, 1, 1, true},
                             Shape{35, 70, 5, 1, 1}, Shape{18, 300, 3, 1, 1}}) {
    compare<DeviceProduct>(Numbers<float>(shape, decaying()));
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

TEST_CASE("cuda causal product: what would leave the range of fp16") {
  NEEDS_DEVICE();
  const auto change = [](std::vector<Half>& x, auto&& f) {
    for (std::size_t i = 0; i < x.size(); ++i) narrow(f(i, widen(x[i])), x[i]);
  };
  const auto check = [](const std::string& what, const Numbers<Half>& numbers) {
    CAPTURE(what);
    compare<DeviceProduct>(numbers);
  };
  constexpr std::int64_t width = 24;
  const Shape shape{100, width, width, 1, 1};
  const auto row = static_cast<std::size_t>(width);
  const Numbers<Half> plain(shape, linear());
  Numbers<Half> x = plain;
  change(x.values, [](std::size_t, float v) { return 100 + 1000 * v; });
  change(x.d_out,
         [&](std::size_t i, float g) { return std::ldexp(g, static_cast<int>(i / row % 19) - 9); });
  check("large values, gradients of results that change from token to token", x);
  for (const float grad : {30.F, -30.F}) {
    x = plain;
    // Not of the same latents all the time: what rises alike cancels in dLoss/dquery.
    change(x.key, [&](std::size_t i, float k) {
      return (i / row + i % row) % 3 == 0 ? k + grad * static_cast<float>(i / row) : k;
    });
    check("keys that rise or fall", x);
  }
  x = Numbers<Half>(shape, CausalProductSizes{});
  change(x.query, [](std::size_t, float q) { return q / 512; });
  change(x.key, [](std::size_t, float k) { return k / 512; });
  change(x.values, [](std::size_t, float v) { return 200 + v; });
  change(x.d_out, [](std::size_t, float g) { return 20 + g; });
  check("features without a bound", x);
}

TEMPLATE_TEST_CASE("cuda causal product: hidden tokens are as if they were not there", "", float,
                   BFloat16, Half) {
  NEEDS_DEVICE();
  check_hidden_tokens<DeviceProduct>(Numbers<TestType>({70, 20, 24, 2, 1, 1, true}, linear()));
}

TEMPLATE_TEST_CASE("cuda causal product: pieces from a memory give the whole", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const CausalProductSizes& kind : product_kinds()) {
    for (const Shape& shape : shapes_in_pieces<T>()) {
      if (!kind.normalised && shape.latents > 7) continue;
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

TEST_CASE("cuda causal product: in a graph, the same bits") {
  NEEDS_DEVICE();
  using kernels::test::in_double;
  const Problem<BFloat16> problem(Numbers<BFloat16>({70, 24, 24, 1, 3}, linear()));
  const std::vector<double> first = in_double(problem.forward());
  const OwnedStream stream;
  DeviceArray<BFloat16> out(first.size());
  auto a = problem.arguments();
  a.out = out.rows(3, 70, 24);
  const std::size_t bytes = causal_product_forward_bytes<BFloat16>(problem.problem.sizes);
  const DeviceArray<unsigned char> space(bytes);
  const Graph graph(stream, [&] {
    causal_product_forward(problem.problem.sizes, a, stream, space.data(), bytes);
  });
  graph.launch(stream);
  synchronize(stream);
  CHECK(in_double(out.values()) == first);
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
