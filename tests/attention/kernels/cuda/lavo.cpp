// The running memory on the device against its definition in double, and against the CPU's
// gradients in double, which its tests trace back to the definition.
#include <cmath>

#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/cuda/lavo_device.hpp"

namespace attnbench::kernels::cuda::test {
namespace {

using kernels::test::Bars;
using kernels::test::check_gradients;
using kernels::test::in_double;
using kernels::test::kinds;
using kernels::test::MemoryProblem;
using kernels::test::relative_rms;

template <class T>
void compare(const LavoSizes& sizes, bool masked = false) {
  CAPTURE(static_cast<int>(sizes.order), sizes.length, sizes.bases, sizes.head_dim, sizes.window,
          sizes.phase, sizes.averaged, masked);
  const MemoryOnDevice<T> device(MemoryProblem<T>(sizes, 1, masked));
  CHECK(relative_rms(device.forward(), device.problem.define()) < Bars<T>::forward);
  MemoryProblem<T> found = device.problem;
  device.backward(found);
  auto exact = device.problem.widened();
  exact.backward(1);
  check_gradients(found, exact);
}

}  // namespace

TEMPLATE_TEST_CASE("cuda running memory: every order at odd sizes", "", float, BFloat16, Half) {
  NEEDS_DEVICE();
  for (const auto& sizes : kinds(sized(1, 7, 5))) compare<TestType>(sizes);
  // One of the two 16-bit types is taken through several tiles.
  const std::int64_t heads = sizeof(TestType) == 2 ? 1 : 2;
  const std::int64_t length = std::is_same_v<TestType, Half> ? 37 : 70;
  for (const auto& sizes : kinds(sized(length, 7, 43, heads))) compare<TestType>(sizes, true);
}

TEMPLATE_TEST_CASE("cuda running memory: more bases and columns than a tile has", "", float,
                   BFloat16) {
  NEEDS_DEVICE();
  for (const auto& [bases, dim] : std::vector<std::pair<int, int>>{{70, 72}, {256, 3}, {1, 256}}) {
    auto sizes = sized(20, bases, dim, 1);
    compare<TestType>(sizes);
    if (bases != 70) continue;
    sizes.order = MemoryOrder::windows;
    sizes.window = 7;
    sizes.averaged = true;
    compare<TestType>(sizes, true);
  }
}

TEST_CASE("cuda running memory: a bases' gradient in several parts") {
  NEEDS_DEVICE();
  auto sizes = sized(400, 5, 6, 1);
  compare<float>(sizes);
  auto all = sizes;
  all.order = MemoryOrder::all;
  all.memory_length = 500;
  compare<float>(all, true);
  sizes.order = MemoryOrder::windows;
  sizes.window = 256;
  sizes.phase = 85;
  compare<BFloat16>(sizes, true);
}

TEMPLATE_TEST_CASE("cuda running memory: hidden tokens may hold anything", "", float, BFloat16) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const auto& sizes : kinds(sized(40, 5, 6))) {
    if (sizes.averaged) continue;  // a token's own row is asked for
    CAPTURE(static_cast<int>(sizes.order), sizes.window);
    MemoryProblem<T> problem(sizes, 1, true);
    const auto length = static_cast<std::size_t>(problem.sizes.memory_length);
    std::fill_n(problem.mask.begin(), length, std::uint8_t{0});
    const auto expected = problem.define();
    for (std::size_t i = 0; i < problem.tokens.size(); ++i) {
      const std::size_t row = i / 6;
      if (problem.mask[row / length / 2 * length + row % length] == 0) {
        problem.tokens[i] = kernels::test::stored<T>(NAN);
      }
    }
    const MemoryOnDevice<T> device(problem);
    const auto out = device.forward();
    device.backward(problem);
    CHECK(relative_rms(out, expected) < Bars<T>::forward);
    for (std::size_t i = 0; i < out.size() / 2; ++i) REQUIRE(widen(out[i]) == 0);
    for (std::size_t i = 0; i < problem.d_tokens.size() / 2; ++i) {
      REQUIRE(widen(problem.d_tokens[i]) == 0);
    }
    for (const float each : problem.d_bases) REQUIRE(std::isfinite(each));
  }
}

TEMPLATE_TEST_CASE("cuda running memory: large and rising inputs stay right", "", float, BFloat16) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const auto& sizes : kinds(sized(66, 7, 8, 1))) {
    CAPTURE(static_cast<int>(sizes.order), sizes.window);
    MemoryProblem<T> problem(sizes, 15);
    for (std::size_t i = 0; i < problem.tokens.size(); ++i) {
      narrow(widen(problem.tokens[i]) + static_cast<float>(i / 8 % 66), problem.tokens[i]);
    }
    narrow(1000.F, problem.query[9]);
    const MemoryOnDevice<T> device(problem);
    const auto out = device.forward();
    device.backward(problem);
    auto exact = problem.widened();
    exact.backward(1);
    CHECK(relative_rms(out, problem.define()) < std::max(1e-3, Bars<T>::forward));
    CHECK(relative_rms(problem.d_tokens, exact.d_tokens) < 1e-2);
    for (const T& each : problem.d_query) REQUIRE(std::isfinite(widen(each)));
  }
}

TEMPLATE_TEST_CASE("cuda running memory: pieces from a carry give the whole", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  using T = TestType;
  for (auto sizes : kinds(sized(112, 7, 9))) {
    if (sizes.order == MemoryOrder::all) continue;
    for (const bool masked : {false, true}) {
      if (!masked && sizeof(T) == 2) continue;
      CAPTURE(static_cast<int>(sizes.order), sizes.window, masked);
      sizes.phase = 0;
      const MemoryOnDevice<T> whole(MemoryProblem<T>(sizes, 1, masked));
      const auto heads = static_cast<std::size_t>(sizes.batch * sizes.heads);
      const DeviceArray<float> mean(std::vector<float>(heads * 7)),
          sum(std::vector<float>(heads * 9));
      const DeviceArray<std::int64_t> count(std::vector<std::int64_t>(2)),
          sum_count(std::vector<std::int64_t>(2));
      const DeviceArray<T> out(whole.problem.out.size());
      std::int64_t begin = 0;
      for (const std::int64_t tokens : {1, 1, 64, 1, 3, 30, 1, 11}) {
        auto piece = whole.problem.sizes;
        piece.length = piece.memory_length = tokens;
        piece.phase = begin % piece.window;
        auto arguments = whole.arguments(begin);
        arguments.out = whole.written(out, sizes.length, begin);
        arguments.carry = {mean.data(), count.data(), nullptr, nullptr};
        if (piece.order == MemoryOrder::windows) {
          arguments.carry.sum = sum.data();
          arguments.carry.sum_count = sum_count.data();
        }
        MemoryOnDevice<T>::run(piece, arguments);
        begin += tokens;
      }
      CHECK(relative_rms(out.values(), whole.problem.define()) < Bars<T>::forward);
    }
  }
}

TEMPLATE_TEST_CASE("cuda running memory: over its tokens, in a graph, the same bits", "", float,
                   BFloat16) {
  NEEDS_DEVICE();
  using T = TestType;
  for (const auto& sizes : kinds(sized(70, 20, 24))) {
    if (!sizes.averaged) continue;
    CAPTURE(static_cast<int>(sizes.order), sizes.window);
    const MemoryOnDevice<T> device(MemoryProblem<T>(sizes, 1, true));
    const std::vector<double> first = in_double(device.forward());
    CHECK(in_double(device.forward()) == first);
    const OwnedStream stream;
    auto a = device.arguments();
    a.out = device.written(device.tokens, sizes.length);
    const std::size_t bytes = lavo_forward_bytes<T>(sizes);
    const DeviceArray<unsigned char> space(bytes);
    const Graph graph(stream, [&] { lavo_forward(sizes, a, stream, space.data(), bytes); });
    graph.launch(stream);
    synchronize(stream);
    CHECK(in_double(device.tokens.values()) == first);
  }
}

TEST_CASE("cuda running memory: what cannot be done is refused with the reason") {
  auto sizes = sized(8, 257, 8);
  CHECK(lavo_refusal(sizes).find("256") != std::string::npos);
  CHECK_THROWS_AS(lavo_forward_bytes<BFloat16>(sizes), std::logic_error);
  CHECK_THROWS_AS(lavo_backward_bytes<float>(sizes), std::logic_error);
  sizes.bases = 256;
  CHECK(lavo_refusal(sizes).empty());
  sizes.head_dim = 257;
  CHECK(lavo_refusal(sizes).find("head_dim") != std::string::npos);
  sizes.head_dim = 256;
  sizes.memory_length = 9;
  CHECK(lavo_refusal(sizes).find("as many tokens") != std::string::npos);
  sizes.order = MemoryOrder::all;
  CHECK(lavo_refusal(sizes).empty());
  sizes.order = MemoryOrder::windows;
  sizes.memory_length = 8;
  sizes.window = 0;
  CHECK(lavo_refusal(sizes).find("window") != std::string::npos);
}

}  // namespace attnbench::kernels::cuda::test
