#include "tests/benchmarks/cuda/work.hpp"

#include <set>
#include <vector>

#include "tests/benchmarks/cuda/arrays.hpp"
#include "tests/benchmarks/cuda/pretend/pretend_device.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::bench {
namespace {

/// Work of a known length, which notes the sets that it was launched on.
struct Known {
  std::vector<int> sets;
  Work work;

  explicit Known(double seconds, int rotating = 1) {
    pretend::behaviour() = {};
    pretend::count() = {};
    work.sets = rotating;
    work.launch = [this, seconds](int set, Stream stream) {
      sets.push_back(set);
      pretend::launch(seconds, stream);
    };
  }
};

}  // namespace

TEST_CASE("a long launch is timed by events, with what lies between two launches") {
  Known known(1e-3);
  const Timing timing = measure(known.work);
  CHECK_FALSE(timing.graph);
  CHECK(timing.launches == 1);
  CHECK(timing.median == Approx(1e-3 + 5e-6));
  CHECK(timing.samples == 50);
  CHECK(timing.clock_hz == 1.5e9);
}

TEST_CASE("a short launch is timed by a graph, without the gaps between launches") {
  Known known(4e-6, 7);
  const Timing timing = measure(known.work);
  CHECK(timing.graph);
  CHECK(pretend::count().replayed > 10);
  CHECK(timing.median == Approx(4e-6).epsilon(0.02));  // the graph's own start is spread thin
  // Whole rounds over the sets, so that a replay begins where the last one ended.
  CHECK(timing.launches % 7 == 0);
}

TEST_CASE("a body that cannot be captured is timed by events") {
  Known known(4e-6);
  pretend::behaviour().captures = false;
  const Timing timing = measure(known.work);
  CHECK_FALSE(timing.graph);
  CHECK(timing.median == Approx(9e-6));
}

TEST_CASE("launches go over all sets in turn") {
  for (const double seconds : {4e-6, 1e-3}) {
    Known known(seconds, 5);
    measure(known.work);
    CHECK(std::set<int>(known.sets.begin(), known.sets.end()) == std::set<int>{0, 1, 2, 3, 4});
    int repeated = 0;
    for (std::size_t i = 1; i < known.sets.size(); ++i)
      repeated += known.sets[i] == known.sets[i - 1];
    CHECK(repeated < 5);  // where one phase ends and the next one begins
  }
}

TEST_CASE("the median stands firm against a few slow launches, and lies within its interval") {
  Known known(0);
  int calls = 0;
  known.work.launch = [&](int, Stream stream) {
    pretend::launch(++calls % 8 == 0 ? 20e-3 : 1e-3, stream);
  };
  const Timing timing = measure(known.work);
  CHECK(timing.median == Approx(1e-3 + 5e-6));
  CHECK(timing.low <= timing.median);
  CHECK(timing.median <= timing.high);
  CHECK(timing.minimum <= timing.low);
}

TEST_CASE("however long or short a launch is, the samples are bounded") {
  for (const double seconds : {0.0, 1e-7, 50e-6, 101e-6, 0.3}) {
    Known known(seconds, 300);
    const Timing timing = measure(known.work);
    CHECK(timing.samples >= 10);
    CHECK(timing.samples <= 200);
    CHECK(timing.launches <= 512);
  }
}

TEST_CASE("a launch that fails ends the measurement with its reason") {
  Known known(1e-3);
  known.work.launch = [](int, Stream) { throw kernels::cuda::Error("illegal address"); };
  CHECK_THROWS_AS(measure(known.work), kernels::cuda::Error);
}

TEST_CASE("rotating sets exceed the L2 four times, and are not without end") {
  const double l2 = static_cast<double>(kernels::cuda::card().l2_bytes);
  CHECK(rotating_sets(4 * l2) == 1);
  CHECK(rotating_sets(l2) == 4);
  CHECK(rotating_sets(l2 / 3) == 12);
  CHECK(rotating_sets(64) == 256);
}

TEST_CASE("arrays go back with their owner") {
  const std::size_t before = pretend::allocated_bytes();
  {
    Arrays arrays;
    arrays.normal<float>(100);
    arrays.zeros<kernels::Half>(3);
    CHECK(pretend::allocated_bytes() == before + 406);
  }
  CHECK(pretend::allocated_bytes() == before);
}

}  // namespace attnbench::bench
