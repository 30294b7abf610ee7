#include "core/tolerance.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("bars are ordered by precision, gradients never below values", "[tolerance]") {
  const Dtype order[] = {Dtype::float64, Dtype::float32, Dtype::float16, Dtype::bfloat16};
  double last = 0;
  for (const Dtype dtype : order) {
    const Tolerance bar = tolerance(dtype);
    CHECK(bar.value > last);
    CHECK(bar.gradient >= bar.value);
    CHECK(bar.unit_roundoff < bar.value);
    CHECK(std::string(bar.reason).size() > 20);
    last = bar.value;
  }
}

TEST_CASE("a naive run's own error widens the bar, but never in double", "[tolerance]") {
  const Tolerance half = tolerance(Dtype::bfloat16);
  CHECK(allowed(half.value, half, 0.001).bar == half.value);
  CHECK(allowed(half.value, half, 0.03).bar == Approx(0.06));
  CHECK(allowed(half.value, half, std::numeric_limits<double>::infinity()).bar == half.value);
  const Tolerance full = tolerance(Dtype::float64);
  CHECK(allowed(full.value, full, 0.1).bar == full.value);
}

TEST_CASE("no naive run widens the bar beyond what its dtype allows", "[tolerance]") {
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    const Tolerance bar = tolerance(dtype);
    const Allowed may = allowed(bar.value, bar, 1.2);
    CHECK(may.bar == bar.most);
    CHECK(may.right(0.9 * bar.most));
    CHECK(may.unchecked(2 * bar.most));
    CHECK_FALSE(may.right(2 * bar.most));
    CHECK_FALSE(may.unchecked(2.5));
  }
}

TEST_CASE("relative_rms measures, and calls what is not finite infinitely wrong", "[tolerance]") {
  CHECK(relative_rms({1, 2, 2}, {1, 2, 2}) == 0);
  CHECK(relative_rms({1, 2, 2.3}, {1, 2, 2}) == Approx(0.1));
  CHECK(relative_rms({0.5, 0.5}, {0, 0}) == Approx(0.5));
  CHECK(std::isinf(relative_rms({std::nan(""), 2}, {1, 2})));
  CHECK(std::isinf(relative_rms({1}, {1, 2})));
  CHECK(relative_rms({}, {}) == 0);
  // Zero beside what the dtype cannot hold is right; beside what it can, it is not.
  const double smallest = tolerance(Dtype::float32).smallest;
  CHECK(relative_rms({0, 0}, {1e-81, -1e-81}, smallest) < 1e-30);
  CHECK(relative_rms({0, 0}, {1e-30, -1e-30}, smallest) == Approx(1));
}
