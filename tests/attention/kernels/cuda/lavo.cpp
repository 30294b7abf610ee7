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
void compare(const LavoSizes& sizes, double spread = 1, bool masked = false,
             bool gradients = true) {
  CAPTURE(static_cast<int>(sizes.order), sizes.length, sizes.bases, sizes.head_dim, sizes.window,
          sizes.phase, sizes.averaged, spread, masked);
  const MemoryOnDevice<T> device(MemoryProblem<T>(sizes, spread, masked));
  CHECK(relative_rms(device.forward(), device.problem.define()) < Bars<T>::forward);
  if (!gradients) return;
  MemoryProblem<T> found = device.problem;
  device.backward(found);
  auto exact = device.problem.widened();
  exact.backward(1);
  check_gradients(found, exact);
}

}  // namespace

TEMPLATE_TEST_CASE("cuda running memory: every order at odd sizes", "", float, BFloat16, Half) {
  NEEDS_DEVICE();
  for (const bool masked : {false, true}) {
    for (const std::int64_t length : {1, 3, 32, 33, 150}) {
      for (const auto& sizes : kinds(sized(length, 7, 43))) compare<TestType>(sizes, 1, masked);
    }
    for (const auto& sizes : kinds(sized(70, 1, 1))) compare<TestType>(sizes, 1, masked);
    for (const auto& sizes : kinds(sized(70, 33, 16))) compare<TestType>(sizes, 1, masked);
  }
}

TEMPLATE_TEST_CASE("cuda running memory: the usual widths, and the widest", "", float, BFloat16,
                   Half) {
  NEEDS_DEVICE();
  for (const auto& sizes : kinds(sized(70, 64, 64, 1))) compare<TestType>(sizes, 1, true);
  for (const auto& [bases, dim] :
       std::vector<std::pair<int, int>>{{128, 128}, {65, 72}, {256, 20}, {20, 256}, {16, 160}}) {
    auto sizes = sized(40, bases, dim, 1);
    compare<TestType>(sizes);
    sizes.order = MemoryOrder::windows;
    sizes.window = 20;
    sizes.averaged = true;
    compare<TestType>(sizes);
  }
}

TEST_CASE("cuda running memory: many segments, heads that need none, and few long windows") {
  NEEDS_DEVICE();
  auto sizes = sized(1500, 16, 8, 1);
  sizes.batch = 1;
  compare<float>(sizes);
  compare<BFloat16>(sizes, 1, true);
  auto all = sizes;
  all.order = MemoryOrder::all;
  all.memory_length = 1700;
  compare<float>(all, 1, true);
  sizes.order = MemoryOrder::windows;
  sizes.averaged = true;
  for (const std::int64_t window : {3, 33, 256, 700, 4000}) {
    sizes.window = window;
    sizes.phase = window / 3;
    compare<float>(sizes);
    compare<Half>(sizes, 1, true);
    if (window > 200) compare<BFloat16>(sizes, 1, true);
  }
  for (auto many : kinds(sized(150, 5, 6, 9))) {
    compare<float>(many, 1, true);
    compare<BFloat16>(many, 1, true);
  }
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
  for (const auto& sizes : kinds(sized(97, 7, 8))) {
    CAPTURE(static_cast<int>(sizes.order), sizes.window);
    MemoryProblem<T> problem(sizes, 15);
    for (std::size_t i = 0; i < problem.tokens.size(); ++i) {
      narrow(widen(problem.tokens[i]) + static_cast<float>(i / 8 % 97), problem.tokens[i]);
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
  for (auto sizes : kinds(sized(350, 7, 9))) {
    if (sizes.order == MemoryOrder::all) continue;
    for (const bool masked : {false, true}) {
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
      for (const std::int64_t tokens : {1, 1, 64, 1, 3, 30, 1, 238, 11}) {
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
  for (const auto& sizes : kinds(sized(300, 20, 24))) {
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

}  // namespace attnbench::kernels::cuda::test
