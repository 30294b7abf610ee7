#include "harness/measure/sampler.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "harness/measure/device.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::measure;

namespace {

/// A clock that moves only when a body says so: each call takes the next of a list of durations.
class FixedStopwatch final : public Stopwatch {
 public:
  explicit FixedStopwatch(std::vector<double> durations) : durations_(std::move(durations)) {}
  double time(const std::function<void()>& body) override {
    body();
    const double seconds = durations_[calls % durations_.size()];
    ++calls;
    now_ += seconds;
    return seconds;
  }
  bool cold() const override { return calls <= cold_until; }
  double now() const override { return now_; }
  /// What `lost` says of the call timed last, from 0 on; nothing where that is empty.
  std::optional<Interference> interference() const override {
    if (!lost) return std::nullopt;
    Interference beside;
    beside.lost_seconds = lost(calls - 1);
    return beside;
  }
  void pass(double seconds) { now_ += seconds; }

  std::function<double(std::size_t)> lost;
  std::size_t calls = 0;
  std::size_t cold_until = 0;  ///< calls that take fresh memory

 private:
  std::vector<double> durations_;
  double now_ = 0;
};

SamplingRule quick_rule() {
  SamplingRule rule;
  rule.warmup_seconds = 0;
  rule.min_seconds = 0;
  rule.max_seconds = 1e9;
  return rule;
}

const std::function<void()> nothing = [] {};

/// Durations whose median's interval is too wide until `calm` calls were made, and a point after.
std::vector<double> calm_after(std::size_t calm, std::size_t total) {
  std::vector<double> durations;
  for (std::size_t i = 0; i < total; ++i) {
    durations.push_back(i < calm ? (i % 2 == 0 ? 0.5 : 1.5) : 1.0);
  }
  return durations;
}

}  // namespace

TEST_CASE("sampling stops at the first test when nothing varies", "[sampler]") {
  FixedStopwatch stopwatch({0.001});
  const Samples samples = sample(stopwatch, quick_rule(), nothing);
  CHECK(samples.seconds.size() == 10);
  CHECK(samples.stop == "interval");
  CHECK(stopwatch.calls == 12);
}

TEST_CASE("calls that still take fresh memory are no samples", "[sampler]") {
  SamplingRule rule = quick_rule();
  FixedStopwatch slow_at_first({9, 9, 9, 9, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  slow_at_first.cold_until = 5;
  rule.cold_seconds = 100;
  CHECK(sample(slow_at_first, rule, nothing).seconds == std::vector<double>(10, 1.0));
  SECTION("not for ever") {
    FixedStopwatch stopwatch({0.001});
    stopwatch.cold_until = 1000;
    sample(stopwatch, rule, nothing);
    CHECK(stopwatch.calls == 2 + 8 + 10);
  }
  SECTION("nor for long") {
    FixedStopwatch stopwatch({4});
    stopwatch.cold_until = 1000;
    rule.cold_seconds = 10;
    sample(stopwatch, rule, nothing);
    CHECK(stopwatch.calls == 2 + 1 + 10);
  }
}

TEST_CASE("the steady clock knows a call that takes fresh memory", "[sampler]") {
  const auto stopwatch = device_cpu()->stopwatch();
  constexpr std::size_t bytes = 16 << 20;
  const auto touch_fresh = [] {
    void* fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(fresh != MAP_FAILED);
    std::memset(fresh, 1, bytes);
    munmap(fresh, bytes);
  };
  stopwatch->time(touch_fresh);
  CHECK(stopwatch->cold());
  std::vector<char> held(bytes, 1);
  stopwatch->time([&held] { std::memset(held.data(), 2, bytes); });
  CHECK_FALSE(stopwatch->cold());
}

TEST_CASE("the interval is tested at n = 10, 15, 22, 33, 49, 73 only", "[sampler]") {
  const std::vector<std::size_t> tests{10, 15, 22, 33, 49, 73, 109};
  for (std::size_t noisy = 0; noisy < 60; noisy += 3) {
    FixedStopwatch stopwatch(calm_after(noisy, 400));
    const Samples samples = sample(stopwatch, quick_rule(), nothing);
    INFO("noisy calls " << noisy << ", samples " << samples.seconds.size());
    CHECK(samples.stop == "interval");
    CHECK(std::count(tests.begin(), tests.end(), samples.seconds.size()) == 1);
  }
}

TEST_CASE("sampling ends at the limit of time or number, and not before the least time",
          "[sampler]") {
  SamplingRule timed = quick_rule();
  timed.max_seconds = 2.0;
  FixedStopwatch varying({0.5, 0.9});
  const Samples at_time = sample(varying, timed, nothing);
  CHECK(at_time.stop == "time");  // with the sample that passes it
  CHECK(at_time.seconds == std::vector<double>{0.5, 0.9, 0.5, 0.9});
  SamplingRule counted = quick_rule();
  counted.max_samples = 27;
  FixedStopwatch noisy({0.5, 1.5});
  const Samples at_number = sample(noisy, counted, nothing);
  CHECK(at_number.stop == "samples");
  CHECK(at_number.seconds.size() == 27);
  SamplingRule least = quick_rule();
  least.min_seconds = 0.030;
  FixedStopwatch calm({0.001});
  const Samples long_enough = sample(calm, least, nothing);
  CHECK(long_enough.stop == "interval");
  CHECK(long_enough.seconds.size() == 33);
}

TEST_CASE("warm-up takes its time and at least two calls, of a long body one", "[sampler]") {
  SamplingRule rule = quick_rule();
  rule.warmup_seconds = 0.05;
  rule.max_samples = 1;
  FixedStopwatch quick({0.001});
  CHECK(sample(quick, rule, nothing).seconds.size() == 1);
  CHECK(quick.calls == 51);
  FixedStopwatch slow({1.0});
  sample(slow, rule, nothing);
  CHECK(slow.calls == 3);
  rule = quick_rule();
  rule.max_seconds = 2;
  FixedStopwatch longer({10.0});
  const Samples samples = sample(longer, rule, nothing);
  CHECK(samples.seconds.size() == 1);
  CHECK(samples.stop == "time");
  CHECK(longer.calls == 2);
}

TEST_CASE("prepare runs before every call and is not in the samples", "[sampler]") {
  FixedStopwatch stopwatch({0.001});
  int prepared = 0;
  int bodies = 0;
  const auto prepare = [&] {
    CHECK(prepared == bodies);
    ++prepared;
    stopwatch.pass(0.25);
  };
  const Samples samples = sample(
      stopwatch, quick_rule(), [&] { ++bodies; }, prepare);
  CHECK(prepared == 12);
  CHECK(bodies == 12);
  for (const double seconds : samples.seconds) CHECK(seconds == 0.001);
  // Its time counts towards the limit.
  SamplingRule rule = quick_rule();
  rule.max_seconds = 1.0;
  const Samples limited = sample(stopwatch, rule, nothing, [&] { stopwatch.pass(0.3); });
  CHECK(limited.stop == "time");
  CHECK(limited.seconds.size() == 4);
}

TEST_CASE("preempted samples are kept and marked, and decide nothing", "[sampler]") {
  // The warm-up takes the first two calls; then every third sample waits for 8 ms.
  std::vector<double> durations(200, 0.001);
  for (std::size_t i = 2; i < durations.size(); i += 3) durations[i] = 0.009;
  FixedStopwatch stopwatch(durations);
  stopwatch.lost = [](std::size_t call) { return call % 3 == 2 ? 0.008 : 0.0; };
  const Samples samples = sample(stopwatch, quick_rule(), nothing);
  CHECK(samples.stop == "interval");
  CHECK_FALSE(samples.disturbed);
  CHECK(samples.seconds.size() == 15);
  CHECK(samples.beside.size() == 15);
  CHECK(samples.preempted == std::vector<std::size_t>{0, 3, 6, 9, 12});
  CHECK(samples.counted() == std::vector<double>(10, 0.001));
}

TEST_CASE("sampling continues while clean samples are missing, up to a limit", "[sampler]") {
  SamplingRule rule = quick_rule();
  rule.max_seconds = 1;
  SECTION("until it has them") {
    FixedStopwatch stopwatch({0.1});
    stopwatch.lost = [](std::size_t call) { return call < 9 ? 0.05 : 0.0; };
    const Samples samples = sample(stopwatch, rule, nothing);
    CHECK(samples.stop == "time");
    CHECK_FALSE(samples.disturbed);
    CHECK(samples.preempted.size() == 7);
    CHECK(samples.seconds.size() == 14);  // the first count of which half is clean
    CHECK(samples.counted().size() == 7);
  }
  SECTION("up to twice the time") {
    FixedStopwatch stopwatch({0.1});
    stopwatch.lost = [](std::size_t) { return 0.05; };
    const Samples samples = sample(stopwatch, rule, nothing);
    CHECK(samples.stop == "time");
    CHECK(samples.disturbed);
    CHECK(samples.seconds.size() == 20);
    CHECK(samples.counted().size() == 20);
  }
  SECTION("up to twice as many") {
    rule.max_samples = 50;
    FixedStopwatch stopwatch({1e-5});
    stopwatch.lost = [](std::size_t) { return 5e-6; };
    const Samples samples = sample(stopwatch, rule, nothing);
    CHECK(samples.stop == "samples");
    CHECK(samples.disturbed);
    CHECK(samples.seconds.size() == 100);
  }
}

TEST_CASE("a few samples that came through among many are not enough", "[sampler]") {
  CHECK(enough_clean(10, 40, 10));
  CHECK_FALSE(enough_clean(10, 41, 10));
  CHECK_FALSE(enough_clean(9, 20, 10));
  CHECK(enough_clean(2, 3, 10));  // so long that time ended first
  CHECK_FALSE(enough_clean(1, 3, 10));
  CHECK_FALSE(enough_clean(0, 0, 10));
}

TEST_CASE("the steady clock knows what was beside a call", "[sampler]") {
  const auto stopwatch = device_cpu()->stopwatch();
  const double seconds = stopwatch->time([&stopwatch] {
    const double end = stopwatch->now() + 0.01;
    while (stopwatch->now() < end) {
    }
  });
  REQUIRE(stopwatch->interference());
  CHECK(stopwatch->interference()->cpu_seconds > 0);
  CHECK(stopwatch->interference()->cpu_seconds < 1.2 * seconds);
}
