#include "harness/program/run/supervise/quiet.hpp"

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::run;
using Catch::Matchers::Contains;
using measure::Neighbours;

namespace {

const Neighbours calm{0.02, {}};
const Neighbours busy{1.9, {{4711, "cc1plus", 1.0}, {812, "ninja", 0.9}}};

/// A clock that moves as far as is watched, and neighbours that come one after the other.
struct Stage {
  std::vector<Neighbours> seen;
  std::size_t looks = 0;
  double clock = 100;
  double stopped_at = INFINITY;
  double enter_at = INFINITY;
  std::string said;
  std::string shown;

  /// Waits for a machine of two CPUs to be quiet enough for two threads.
  Quiet wait(const Neighbours& now, double most, int cpus = 2) {
    return wait_for_quiet(surroundings(), now, 2, cpus, most);
  }
  QuietSurroundings surroundings() {
    QuietSurroundings given;
    given.watch = [this](double seconds) {
      clock += seconds;
      return seen.at(std::min(looks++, seen.size() - 1));
    };
    given.now = [this] { return clock; };
    given.stopped = [this] { return clock >= stopped_at; };
    given.told_to_go_on = [this] { return clock >= enter_at; };
    given.say = [this](const std::string& sentence) { said += sentence + "\n"; };
    given.show = [this](const std::string& line) { shown = line; };
    return given;
  }
};

}  // namespace

TEST_CASE("on a quiet machine there is no message and no wait", "[quiet]") {
  Stage stage;
  CHECK(stage.wait(calm, INFINITY).waited_seconds == 0);
  CHECK(stage.said.empty());
  CHECK(stage.looks == 0);
  // Nor a wait where there are enough free CPUs.
  stage.wait(busy, INFINITY, 64);
  CHECK_THAT(stage.said, Contains("There is room for the 2 threads"));
  CHECK(stage.looks == 0);
}

TEST_CASE("busy processes are named, with their effect on times", "[quiet]") {
  Stage stage;
  CHECK(stage.wait(busy, 0).waited_seconds == 0);
  CHECK_THAT(stage.said, Contains("1.9 of 2 CPUs busy: cc1plus (4711) 100 %, ninja (812) 90 %") &&
                             Contains("times come out too long") && Contains("--wait SECONDS"));
  CHECK(stage.looks == 0);
}

TEST_CASE("as many threads as have room beside busy processes are offered", "[quiet]") {
  Stage one;
  one.wait({1.0, {{4711, "cc1plus", 1.0}}}, 0);
  CHECK_THAT(one.said, Contains("--threads 1 has room beside them"));
  Stage none;
  none.wait(busy, 0);
  CHECK_THAT(none.said, !Contains("--threads"));
}

TEST_CASE("a run goes on once two looks in a row find the machine quiet", "[quiet]") {
  Stage stage;
  stage.seen = {busy, calm, busy, calm, calm};
  const Quiet quiet = stage.wait(busy, INFINITY);
  CHECK(stage.looks == 5);
  CHECK(quiet.waited_seconds == Approx(2.5));
  CHECK(quiet.neighbours.cpus == calm.cpus);
  CHECK_THAT(stage.said, Contains("Waiting for quiet. Enter continues") && Contains("Quiet after"));
  CHECK_THAT(stage.shown, Contains("waiting for quiet"));
}

TEST_CASE("a run that waited as long as it may, or is told to, goes on and says so", "[quiet]") {
  Stage stage;
  stage.seen = {busy};
  const Quiet quiet = stage.wait(busy, 3);
  CHECK(quiet.waited_seconds == Approx(3));
  CHECK(quiet.neighbours.cpus == busy.cpus);
  CHECK_THAT(stage.said, Contains("at most 3 s") &&
                             Contains("Not quiet after 3 s: going on. Other processes keep 1.9"));
  Stage told;
  told.seen = {busy};
  told.enter_at = 102;
  CHECK(told.wait(busy, INFINITY).waited_seconds == Approx(2));
  CHECK_THAT(told.said, Contains("Going on, told to"));
  Stage stopped;
  stopped.seen = {busy};
  stopped.stopped_at = 101;
  CHECK(stopped.wait(busy, INFINITY).waited_seconds == Approx(1));
}

TEST_CASE("on a terminal a run waits unless told how long, elsewhere only if told", "[quiet]") {
  CHECK(std::isinf(longest_wait(std::nullopt, true)));
  CHECK(longest_wait(std::nullopt, false) == 0);
  CHECK(longest_wait(0.0, true) == 0);
  CHECK(longest_wait(7.0, false) == 7);
}
