// What is known of Nystroemformer, whatever computes it.
#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace {

using test::Fixture;
using test::relative_error;

Fixture nystromformer(std::int64_t length, std::int64_t width, std::int64_t landmarks,
                      std::int64_t iterations = 6, double scale = 1) {
  return {"nystromformer",
          test::two_by_two(length, width, Pattern::bidirectional),
          {{"landmarks", landmarks}, {"iterations", iterations}},
          scale};
}

}  // namespace

TEST_CASE("nystromformer: the iteration converges to softmax attention") {
  // With a landmark for each token and the exact inverse the product is the softmax itself.
  Fixture exact = nystromformer(12, 4, 12, 40, 0.7);
  Fixture softmax("softmax", exact.problem);
  softmax.inputs = exact.inputs;
  const at::Tensor want = softmax.output("composite");
  CHECK(relative_error(exact.output("composite"), want) < 1e-6);
  double last = 1e9;
  for (const std::int64_t iterations : {2, 6, 10, 14, 18}) {
    Fixture held = nystromformer(12, 4, 12, iterations, 0.7);
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
      Fixture held = nystromformer(landmarks, 64, landmarks, 6, spread);
      Fixture softmax("softmax", held.problem);
      softmax.inputs = held.inputs;
      const at::Tensor want = softmax.output("composite");
      Fixture longer = nystromformer(landmarks, 64, landmarks, 12, spread);
      longer.inputs = held.inputs;
      CAPTURE(landmarks, spread);
      const double after_six = relative_error(held.output("composite"), want);
      CHECK(after_six > 0.01);
      CHECK(after_six < 0.07);
      CHECK(relative_error(longer.output("composite"), want) < 0.0015);
    }
  }
}

}  // namespace attnbench
