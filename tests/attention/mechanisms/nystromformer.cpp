// Nystroemformer against its definition, and what is known of it.
#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

Held nystromformer(std::int64_t length, std::int64_t width, std::int64_t landmarks,
                   std::int64_t iterations = 6, double scale = 1) {
  return {"nystromformer",
          test::two_by_two(length, width, Pattern::bidirectional),
          {{"landmarks", landmarks}, {"iterations", iterations}},
          scale};
}

}  // namespace

TEST_CASE("nystromformer: equals the definition, segments of one size or not") {
  for (const auto& [length, landmarks] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 4}, {5, 64}, {64, 16}, {67, 16}, {33, 1}}) {
    const Held held = nystromformer(length, 9, landmarks);
    CAPTURE(length, landmarks);
    CHECK(relative_error(held.output("composite"), held.expected()) < 1e-11);
    CHECK(relative_error(held.output("composite", at::kFloat), held.expected()) < 5e-5);
  }
}

TEST_CASE("nystromformer: gradients and padding are those of the definition") {
  const Held held = nystromformer(29, 5, 4);
  test::check_gradients(held, "composite");
  test::check_padding(held, "composite", {20, 29, {"key", "value"}});
}

TEST_CASE("nystromformer: the iteration converges to softmax attention") {
  // With a landmark for each token and the exact inverse the product is the softmax itself.
  Held exact = nystromformer(12, 4, 12, 40, 0.7);
  Problem problem = exact.problem;
  Held softmax("softmax", problem);
  for (const char* role : {"query", "key", "value"}) {
    softmax.inputs.tensors[role] = exact.inputs[role];
  }
  const at::Tensor want = softmax.expected();
  CHECK(relative_error(exact.output("composite"), want) < 1e-6);
  double last = 1e9;
  for (const std::int64_t iterations : {2, 6, 10, 14, 18}) {
    Held held = nystromformer(12, 4, 12, iterations, 0.7);
    held.inputs = exact.inputs;
    const double error = relative_error(held.output("composite"), want);
    CAPTURE(iterations, error);
    CHECK(error < last);
    last = error;
  }
}

TEST_CASE("nystromformer: the iteration comes as far as its option says") {
  // With a landmark for each token the output is A Z A V, and that of softmax is A V. The inputs
  // are as spread as means of 32 normal tokens, and twice and four times that.
  for (const std::int64_t landmarks : {16, 32, 64}) {
    for (const double spread : {0.18, 0.35, 0.7}) {
      Held held = nystromformer(landmarks, 64, landmarks, 6, spread);
      Held softmax("softmax", held.problem);
      softmax.inputs = held.inputs;
      const at::Tensor want = softmax.expected();
      Held longer = nystromformer(landmarks, 64, landmarks, 12, spread);
      longer.inputs = held.inputs;
      CAPTURE(landmarks, spread);
      const double after_six = relative_error(held.output("composite"), want);
      CHECK(after_six > 0.01);
      CHECK(after_six < 0.07);
      CHECK(relative_error(longer.output("composite"), want) < 0.0015);
    }
  }
}

TEST_CASE("nystromformer: refuses patterns that have no landmarks, and no landmarks") {
  const Entry& entry = test::registry().entry("nystromformer");
  const auto resolve = [&](const Said& said) { return Options::resolve(entry.options, said); };
  CHECK_THROWS_AS(resolve({{"landmarks", test::count(0)}}), UsageError);
  CHECK_THROWS_AS(resolve({{"iterations", test::count(0)}}), UsageError);
  Problem problem;
  for (const Pattern pattern : {Pattern::causal, Pattern::cross}) {
    problem.pattern = pattern;
    const Support support = entry.supports(resolve({}), problem);
    CHECK_FALSE(support);
    CHECK(support.reason.find("is undefined") != std::string::npos);
  }
}

}  // namespace attnbench
