// The running memory on the CPU against its definition in double: sizes, masks, carries, gradients.
#include "attention/kernels/lavo.hpp"

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
