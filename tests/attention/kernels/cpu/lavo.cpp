// The running memory on the CPU against its definition in double: sizes, masks, carries, gradients.
#include "attention/kernels/lavo.hpp"

#include <limits>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/lavo_problem.hpp"

namespace attnbench::kernels::test {
namespace {

template <class T>
void compare(const LavoSizes& sizes, double spread = 1, bool masked = false, int threads = 3) {
  CAPTURE(static_cast<int>(sizes.order), sizes.length, sizes.bases, sizes.head_dim, sizes.window,
          sizes.phase, spread, masked);
  MemoryProblem<T> problem(sizes, spread, masked);
  problem.forward(threads);
  CHECK(relative_rms(problem.out, problem.define()) < Bars<T>::forward);
  problem.backward(threads);
  auto exact = problem.widened();
  exact.backward(1);
  check_gradients(problem, exact);
}

/// Derivatives along random directions against central differences of the definition.
void check_grads(const LavoSizes& sizes, bool masked) {
  CAPTURE(static_cast<int>(sizes.order), sizes.window, sizes.phase, masked);
  MemoryProblem<double> problem(sizes, 1, masked);
  problem.backward(2);
  std::mt19937 engine(3);
  const auto loss = [&] { return inner(problem.define(), problem.d_out); };
  check_grad(engine, loss, problem.query, problem.d_query);
  check_grad(engine, loss, problem.tokens, problem.d_tokens);
  check_grad(engine, loss, problem.bases, problem.d_bases);
}

}  // namespace

TEMPLATE_TEST_CASE("kernels running memory: every order at odd sizes", "", float, double,
                   BFloat16) {
  for (const bool masked : {false, true}) {
    for (const std::int64_t length : {1, 3, 64, 65, 200}) {
      for (const auto& sizes : kinds(sized(length, 7, 43))) compare<TestType>(sizes, 1, masked);
    }
    for (const auto& sizes : kinds(sized(70, 1, 1))) compare<TestType>(sizes, 1, masked);
    for (const auto& sizes : kinds(sized(70, 33, 16))) compare<TestType>(sizes, 1, masked);
  }
}

TEST_CASE("kernels running memory: many parts, and few long windows") {
  auto sizes = sized(3000, 16, 8);
  sizes.batch = 1;
  compare<float>(sizes);
  compare<double>(sizes, 1, true);
  sizes.order = MemoryOrder::windows;
  sizes.averaged = true;
  for (const std::int64_t window : {33, 256, 1500, 4000}) {
    sizes.window = window;
    compare<float>(sizes);
    compare<double>(sizes, 1, true);
  }
}

TEST_CASE("kernels running memory: gradients are grads of the definition") {
  for (const bool masked : {false, true}) {
    for (const auto& sizes : kinds(sized(37, 5, 4))) check_grads(sizes, masked);
    for (const auto& sizes : kinds(sized(150, 3, 2))) check_grads(sizes, masked);
  }
}

TEST_CASE(
    "kernels running memory: hidden tokens may hold anything, a hidden row remembers nothing") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (auto sizes : kinds(sized(40, 5, 6))) {
    if (sizes.averaged) continue;  // a token's own row is asked for
    CAPTURE(static_cast<int>(sizes.order), sizes.window);
    MemoryProblem<double> problem(sizes, 1, true);
    const auto length = static_cast<std::size_t>(problem.sizes.memory_length);
    std::fill_n(problem.mask.begin(), length, std::uint8_t{0});
    const auto expected = problem.define();
    for (std::size_t i = 0; i < problem.tokens.size(); ++i) {
      const std::size_t row = i / 6;
      if (problem.mask[row / length / 2 * length + row % length] == 0) problem.tokens[i] = nan;
    }
    problem.forward(2);
    problem.backward(2);
    CHECK(relative_rms(problem.out, expected) < 1e-13);
    for (std::size_t i = 0; i < problem.out.size() / 2; ++i) REQUIRE(problem.out[i] == 0);
    for (std::size_t i = 0; i < problem.d_tokens.size() / 2; ++i) {
      REQUIRE(problem.d_tokens[i] == 0);
    }
    for (const double each : problem.d_bases) REQUIRE(std::isfinite(each));
  }
}

TEST_CASE("kernels running memory: large and rising inputs stay right") {
  for (const auto& sizes : kinds(sized(97, 7, 8))) {
    compare<double>(sizes, 15);
    MemoryProblem<float> problem(sizes, 15);
    for (std::size_t i = 0; i < problem.tokens.size(); ++i) {
      problem.tokens[i] += static_cast<float>(i / 8 % 97);
    }
    problem.query[9] = 1000;
    problem.forward(2);
    problem.backward(2);
    auto exact = problem.widened();
    exact.backward(1);
    CHECK(relative_rms(problem.out, problem.define()) < 1e-3);
    CHECK(relative_rms(problem.d_tokens, exact.d_tokens) < 1e-2);
    for (const float each : problem.d_query) REQUIRE(std::isfinite(each));
  }
}

TEMPLATE_TEST_CASE("kernels running memory: pieces from a carry give the whole", "", float,
                   double) {
  using R = TestType;
  auto all = kinds(sized(150, 7, 9));
  for (const auto& whole_vectors : kinds(sized(150, 16, 32))) all.push_back(whole_vectors);
  for (auto sizes : all) {
    if (sizes.order == MemoryOrder::all) continue;
    for (const bool masked : {false, true}) {
      CAPTURE(static_cast<int>(sizes.order), sizes.window, sizes.phase, masked);
      sizes.phase = 0;
      MemoryProblem<R> whole(sizes, 1, masked);
      const auto expected = whole.define();
      const auto heads = static_cast<std::size_t>(sizes.batch * sizes.heads);
      std::vector<R> mean(heads * static_cast<std::size_t>(sizes.bases), R{0});
      std::vector<R> sum(heads * static_cast<std::size_t>(sizes.head_dim), R{0});
      std::vector<std::int64_t> count(2, 0), sum_count(2, 0);
      std::fill(whole.out.begin(), whole.out.end(), R{0});
      std::int64_t begin = 0;
      for (const std::int64_t tokens : {1, 1, 64, 3, 70, 11}) {
        auto piece = whole.sizes;
        piece.length = piece.memory_length = tokens;
        piece.phase = begin % piece.window;
        auto arguments = whole.arguments(begin);
        arguments.carry = {mean.data(), count.data(), nullptr, nullptr};
        if (piece.order == MemoryOrder::windows) {
          arguments.carry.sum = sum.data();
          arguments.carry.sum_count = sum_count.data();
        }
        MemoryProblem<R>::run(piece, arguments, 6);
        begin += tokens;
      }
      CHECK(relative_rms(whole.out, expected) < Bars<R>::forward);
    }
  }
}

TEST_CASE(
    "kernels running memory: the same bits for any number of threads, and every ISA is right") {
  for (const auto& sizes : kinds(sized(1100, 20, 24))) {
    MemoryProblem<float> one(sizes);
    MemoryProblem<float> many = one;
    one.forward(1);
    many.forward(4);
    CHECK(one.out == many.out);
    one.backward(1);
    many.backward(4);
    CHECK(one.d_tokens == many.d_tokens);
    CHECK(one.d_bases == many.d_bases);
  }
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    for (const auto& sizes : kinds(sized(97, 20, 43))) {
      compare<float>(sizes);
      compare<double>(sizes);
    }
  }
}

}  // namespace attnbench::kernels::test
