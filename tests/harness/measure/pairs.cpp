#include "harness/measure/pairs.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench::measure;

namespace {

/// A clock that moves by what the body that is called says it takes.
class FakeStopwatch final : public Stopwatch {
 public:
  double time(const std::function<void()>& body) override {
    body();
    now_ += takes;
    return takes;
  }
  double now() const override { return now_; }
  std::optional<Interference> interference() const override {
    Interference beside;
    beside.lost_seconds = loses;
    return beside;
  }
  double takes = 0;
  double loses = 0;

 private:
  double now_ = 0;
};

SamplingRule rule() {
  SamplingRule rule;
  rule.warmup_seconds = 0;
  rule.max_seconds = 1e9;
  return rule;
}

/// A body whose n-th call takes `seconds(n)`.
PairedBody body(FakeStopwatch& stopwatch, std::function<double(int)> seconds) {
  auto count = std::make_shared<int>(0);
  return {[&stopwatch, seconds, count] { stopwatch.takes = seconds((*count)++); }, {}};
}

PairedBody steady(FakeStopwatch& stopwatch, double seconds) {
  return body(stopwatch, [seconds](int) { return seconds; });
}

constexpr double brief = recorded_below_seconds / 2;
constexpr double lengthy = recorded_below_seconds * 2;

/// What was called, in order: b before, c call, r recording, p played.
struct Calls {
  std::string text;
  PairedBody body(bool with_before) {
    PairedBody made{[this] { text += 'c'; }, {}};
    if (with_before) made.before = [this] { text += 'b'; };
    return made;
  }
  Recorder recorder() {
    return [this](const PairedBody&, std::string&) {
      text += 'r';
      return [this] { text += 'p'; };
    };
  }
};

}  // namespace

TEST_CASE("a clear difference is decided with the fewest pairs, equal bodies are found equal",
          "[pairs]") {
  FakeStopwatch stopwatch;
  const Pairs pairs =
      sample_pairs(stopwatch, rule(), steady(stopwatch, 0.010), steady(stopwatch, 0.020));
  CHECK(pairs.stop == "decided");
  CHECK(pairs.first_seconds.size() == least_pairs);
  CHECK(pairs.second_seconds.size() == least_pairs);
  CHECK(ratio_median(pairs) == Approx(2));
  CHECK(ratio_interval(pairs)->low == Approx(2));
  const Pairs equal =
      sample_pairs(stopwatch, rule(), steady(stopwatch, 0.010), steady(stopwatch, 0.010));
  CHECK(equal.stop == "equal");
  CHECK(ratio_median(equal) == Approx(1));
}

TEST_CASE("a difference below the variation stays undecided until the limits", "[pairs]") {
  FakeStopwatch stopwatch;
  const auto noisy = [](int n) { return n % 4 < 2 ? 0.5 : 1.5; };
  SamplingRule limits = rule();
  const auto sampled = [&] {
    return sample_pairs(stopwatch, limits, body(stopwatch, noisy), steady(stopwatch, 1));
  };
  SECTION("of samples") {
    limits.max_samples = 40;
    const Pairs pairs = sampled();
    CHECK(pairs.stop == "samples");
    CHECK(pairs.first_seconds.size() == 40);
  }
  SECTION("of time, but never before there could be an interval") {
    limits.max_seconds = 1;
    const Pairs pairs = sampled();
    CHECK(pairs.stop == "time");
    CHECK(pairs.first_seconds.size() == least_pairs);
  }
  SECTION("a common slowdown of the machine is not noise") {
    const auto slowing = [](int n) { return 1.0 + n; };
    const auto slower = [](int n) { return 1.5 * (1.0 + n); };
    const Pairs pairs =
        sample_pairs(stopwatch, limits, body(stopwatch, slowing), body(stopwatch, slower));
    CHECK(pairs.stop == "decided");
    CHECK(ratio_median(pairs) == Approx(1.5));
  }
}

TEST_CASE("neither body always comes first, and each is prepared before its call", "[pairs]") {
  FakeStopwatch stopwatch;
  std::string order;
  const auto noted = [&](char name) {
    return PairedBody{[&, name] {
                        order += name;
                        stopwatch.takes = name == 'a' ? 1 : 2;
                      },
                      [&] { order += '.'; }};
  };
  sample_pairs(stopwatch, rule(), noted('a'), noted('b'));
  CHECK(order.substr(0, 16) == ".a.b.a.b.b.a.a.b");
}

TEST_CASE("too few pairs have no interval", "[pairs]") {
  Pairs pairs;
  for (std::size_t i = 0; i + 1 < least_pairs; ++i) {
    pairs.first_seconds.push_back(1);
    pairs.second_seconds.push_back(2);
  }
  CHECK_FALSE(ratio_interval(pairs));
  pairs.first_seconds.push_back(1);
  pairs.second_seconds.push_back(2);
  CHECK(ratio_interval(pairs));
}

TEST_CASE("a pair of which a side was preempted is left out", "[pairs]") {
  FakeStopwatch stopwatch;
  // Every other call of the first waits so long that it would seem the slower one.
  int calls = 0;
  const PairedBody first{[&] {
                           const bool waits = calls++ % 2 == 0;
                           stopwatch.loses = waits ? 0.5 : 0;
                           stopwatch.takes = waits ? 0.51 : 0.01;
                         },
                         {}};
  const PairedBody second{[&] {
                            stopwatch.loses = 0;
                            stopwatch.takes = 0.02;
                          },
                          {}};
  const Pairs pairs = sample_pairs(stopwatch, rule(), first, second);
  CHECK(pairs.stop == "decided");
  CHECK(pairs.clean() == least_pairs);
  CHECK(pairs.preempted.size() >= least_pairs - 1);
  CHECK(ratio_median(pairs) == Approx(2));
  CHECK(ratio_interval(pairs)->low == Approx(2));
}

TEST_CASE("pairs that are all preempted decide nothing, and end", "[pairs]") {
  FakeStopwatch stopwatch;
  stopwatch.loses = 0.005;
  SamplingRule limits = rule();
  SECTION("by time") { limits.max_seconds = 0.1; }
  SECTION("by number") { limits.max_samples = 20; }
  const Pairs pairs =
      sample_pairs(stopwatch, limits, steady(stopwatch, 0.010), steady(stopwatch, 0.020));
  CHECK(pairs.stop == "disturbed");
  CHECK_FALSE(ratio_interval(pairs));
  CHECK(ratio_median(pairs) == Approx(2));
  CHECK(pairs.first_seconds.size() <= 40);
}

TEST_CASE(
    "a short body is recorded, a long one or one with preparation only where it is said to be",
    "[recording]") {
  const auto recording_of = [](Calls& calls, double seconds, bool with_before, bool recordable) {
    FakeStopwatch stopwatch;
    stopwatch.takes = seconds;
    return record_if_short(stopwatch, calls.body(with_before), recordable, calls.recorder());
  };
  Calls quick, slow, prepared, said;
  const Recording recording = recording_of(quick, brief, false, false);
  REQUIRE(recording.play);
  CHECK(recording.wanted());
  recording.play();
  CHECK(quick.text == "cccrp");
  const Recording none = recording_of(slow, lengthy, false, false);
  CHECK_FALSE(none.play);
  CHECK_FALSE(none.wanted());
  CHECK(slow.text == "ccc");
  const Recording before = recording_of(prepared, brief, true, false);
  CHECK_FALSE(before.play);
  CHECK(before.wanted());
  CHECK_THAT(before.why, Catch::Contains("before each call"));
  CHECK(prepared.text == "bcbcbc");
  CHECK(recording_of(said, lengthy, true, true).play);
  CHECK(said.text == "r");
}

TEST_CASE("a recording that fails leaves its reason", "[recording]") {
  Calls calls;
  FakeStopwatch quick;
  quick.takes = brief;
  for (const std::string reason : {"it waits for the device", ""}) {
    const auto failing = [&](const PairedBody&, std::string& why) -> std::function<void()> {
      why = reason;
      return {};
    };
    const Recording recording = record_if_short(quick, calls.body(false), false, failing);
    CHECK_FALSE(recording.play);
    CHECK((recording.why == reason || (reason.empty() && recording.wanted())));
  }
}
