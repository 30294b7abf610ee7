#include "harness/measure/recording.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench::measure;

namespace {

/// Every call takes as long as it is told.
class FakeStopwatch final : public Stopwatch {
 public:
  explicit FakeStopwatch(double seconds) : seconds_(seconds) {}
  double time(const std::function<void()>& body) override {
    body();
    return seconds_;
  }
  double now() const override { return 0; }

 private:
  double seconds_;
};

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

TEST_CASE("a short body is recorded, a long one is not", "[recording]") {
  Calls calls;
  FakeStopwatch quick(brief);
  const Recording recording = record_if_short(quick, calls.body(false), false, calls.recorder());
  REQUIRE(recording.play);
  CHECK(recording.wanted());
  recording.play();
  CHECK(calls.text == "cccrp");

  Calls others;
  FakeStopwatch slow(lengthy);
  const Recording none = record_if_short(slow, others.body(false), false, others.recorder());
  CHECK_FALSE(none.play);
  CHECK_FALSE(none.wanted());
  CHECK(others.text == "ccc");
}

TEST_CASE("what comes before a short body forbids its recording, and the reason is told",
          "[recording]") {
  Calls calls;
  FakeStopwatch quick(brief);
  const Recording recording = record_if_short(quick, calls.body(true), false, calls.recorder());
  CHECK_FALSE(recording.play);
  CHECK(recording.wanted());
  CHECK_THAT(recording.why, Catch::Contains("before each call"));
  CHECK(calls.text == "bcbcbc");
}

TEST_CASE("a body that is said to be recordable is recorded however long it takes", "[recording]") {
  Calls calls;
  FakeStopwatch slow(lengthy);
  CHECK(record_if_short(slow, calls.body(true), true, calls.recorder()).play);
  CHECK(calls.text == "r");
}

TEST_CASE("a recording that fails leaves its reason", "[recording]") {
  Calls calls;
  FakeStopwatch quick(brief);
  const auto failing = [](const PairedBody&, std::string& why) -> std::function<void()> {
    why = "it waits for the device";
    return {};
  };
  const Recording recording = record_if_short(quick, calls.body(false), false, failing);
  CHECK_FALSE(recording.play);
  CHECK(recording.why == "it waits for the device");
  const auto silent = [](const PairedBody&, std::string&) { return std::function<void()>(); };
  CHECK(record_if_short(quick, calls.body(false), false, silent).wanted());
}
