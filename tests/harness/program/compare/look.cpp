#include "harness/program/compare/look.hpp"

#include "harness/program/compare/paired.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using compare::Gate;
using compare::Match;
using compare::Pair;
using compare::SpeedVerdict;
using compare::Spending;

namespace {

/// A run of one cell whose sides took `base` and `base` times `ratios` seconds. Round i is
/// numbers[i].
class LookedAt {
 public:
  explicit LookedAt(Gate gate) : gate_(gate) {
    for (const char* id : {"a-base", "a-new", "a-again"}) {
      result_.cells.push_back(test::CellBuilder(id).took(0.01));
    }
  }

  /// Rounds `begin`, `begin` + 1, … whose ratios repeat `ratios`.
  LookedAt& rounds(int begin, int count, const std::vector<double>& ratios) {
    for (int i = 0; i < count; ++i) {
      const double ratio = ratios[static_cast<std::size_t>(i) % ratios.size()];
      add(0, begin + i, 0.01);
      add(1, begin + i, 0.01 * ratio);
      add(2, begin + i, 0.01);
    }
    return *this;
  }
  /// The same in rounds that other programs disturbed, the control being `controls` times the base.
  LookedAt& disturbed(int begin, int count, const std::vector<double>& ratios,
                      const std::vector<double>& controls) {
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      add(0, begin + i, 0.01, true);
      add(1, begin + i, 0.01 * ratios[at % ratios.size()], true);
      add(2, begin + i, 0.01 * controls[at % controls.size()], true);
    }
    return *this;
  }
  LookedAt& threads(int count) {
    result_.run.threads = count;
    return *this;
  }
  LookedAt& status(std::size_t cell, Status status) {
    result_.cells[cell].status = status;
    return *this;
  }

  compare::Comparison comparison() const {
    return compare::paired(result_, {"x", "y", "x, again"}, matches_, gate_);
  }
  Pair pair() const {
    const compare::Comparison all = comparison();
    REQUIRE(all.pairs.size() == 1);
    return all.pairs[0];
  }
  std::optional<run::Further> further(const Spending& spending = {}) const {
    return compare::further(comparison(), matches_, spending);
  }

 private:
  void add(std::size_t cell, int round, double seconds, bool disturbed = false) {
    result::TimingRound one;
    one.round = round;
    // The least sample of a disturbed round is what it is judged by.
    one.median_seconds = disturbed ? 7 * seconds : seconds;
    if (disturbed) one.samples_seconds = {9 * seconds, seconds};
    one.disturbed = disturbed;
    result_.cells[cell].timing["forward"].rounds.push_back(one);
  }

  Gate gate_;
  result::Result result_;
  std::vector<Match> matches_{{"a", "a-base", "a-new", "a-again"}};
};

const std::vector<double> wide{0.9, 1.1};

/// The cells of all sides of these matches.
std::set<std::string> sides_of(const std::vector<std::string>& names) {
  std::set<std::string> ids;
  for (const std::string& name : names) {
    for (const char* side : {"-base", "-new", "-again"}) ids.insert(name + side);
  }
  return ids;
}

}  // namespace

TEST_CASE("a cell that is clear at the first look wants no more rounds", "[compare][ab]") {
  const std::vector<std::pair<double, SpeedVerdict>> clear{
      {1.0, SpeedVerdict::same}, {0.9, SpeedVerdict::fast}, {1.01, SpeedVerdict::same}};
  for (const auto& [ratio, verdict] : clear) {
    const LookedAt run = LookedAt(Gate{}).rounds(0, 12, {ratio});
    CHECK(run.pair().verdict == verdict);
    CHECK(run.pair().rounds_wanted == 0);
    CHECK_FALSE(run.further());
  }
  // Whatever was measured later for another timing changes nothing.
  const Pair pair = LookedAt(Gate{}).rounds(0, 12, {1.0}).rounds(12, 12, {2.0}).pair();
  CHECK(pair.verdict == SpeedVerdict::same);
  CHECK(pair.rounds == 12);
}

TEST_CASE("only what is unclear goes on, to the next look and no farther than the last",
          "[compare][ab]") {
  LookedAt run = LookedAt(Gate{}).rounds(0, 12, wide);
  CHECK(run.pair().verdict == SpeedVerdict::unclear);
  auto next = run.further();
  REQUIRE(next);
  CHECK(next->cells == sides_of({"a"}));
  CHECK(next->begin == 12);
  CHECK(next->end == 24);
  CHECK_FALSE(next->drawn);
  next = run.rounds(12, 5, wide).further();  // interrupted within the second look
  REQUIRE(next);
  CHECK(next->end == 24);
  next = run.rounds(17, 7, wide).further();
  REQUIRE(next);
  CHECK(next->begin == 24);
  CHECK(next->end == 48);
  run.rounds(24, 24, wide);
  CHECK(run.pair().verdict == SpeedVerdict::unclear);
  CHECK(run.pair().rounds == 48);
  CHECK_FALSE(run.further());
  for (const auto status : {Status::crashed, Status::wrong}) {
    const LookedAt ended = LookedAt(Gate{}).rounds(0, 12, wide).status(1, status);
    CHECK(ended.pair().verdict == SpeedVerdict::unclear);
    CHECK_FALSE(ended.further());
  }
}

TEST_CASE("what is slow is confirmed by rounds of its own", "[compare][ab]") {
  LookedAt run = LookedAt(Gate{}).rounds(0, 12, {1.1});
  CHECK(run.pair().verdict == SpeedVerdict::unclear);
  CHECK(run.pair().reason ==
        "SLOW in 12 rounds, and not confirmed: no round in fresh processes counts");
  const auto next = run.further();
  REQUIRE(next);
  CHECK(next->cells == sides_of({"a"}));
  CHECK(next->begin == 48);
  CHECK(next->end == 72);
  CHECK(next->drawn);
  SECTION("and stays so where they say it, too") {
    const Pair pair = run.rounds(48, 24, {1.08}).pair();
    CHECK(pair.verdict == SpeedVerdict::slow);
    CHECK(pair.ratio == Approx(1.1));  // of the first rounds alone
    REQUIRE(pair.confirmation);
    CHECK(pair.confirmation->ratio == Approx(1.08));
    CHECK_FALSE(run.further());
  }
  SECTION("and is unclear where they do not") {
    const Pair pair = run.rounds(48, 24, {1.02, 0.99}).pair();
    CHECK(pair.verdict == SpeedVerdict::unclear);
    CHECK(pair.reason ==
          "SLOW in 12 rounds, not confirmed by 24 in fresh processes: 1.005 [0.990, 1.020]");
    CHECK_FALSE(run.further());
  }
  SECTION("or slower by less than counts") {
    CHECK(run.rounds(48, 24, {1.02}).pair().verdict == SpeedVerdict::unclear);
  }
  SECTION("or were interrupted") {
    const Pair pair = run.rounds(48, 3, {1.1}).pair();
    CHECK(pair.verdict == SpeedVerdict::unclear);
    CHECK_THAT(pair.reason, Catch::Contains("3 rounds in fresh processes are too few"));
    CHECK(run.further());
  }
}

TEST_CASE("a change must pass both bars, and stands at once where none is to confirm it",
          "[compare][ab]") {
  Gate gate;
  gate.confirm = 0;
  const LookedAt run = LookedAt(gate).rounds(0, 12, {1.1});
  CHECK(run.pair().verdict == SpeedVerdict::slow);
  CHECK_FALSE(run.further());
  gate = {};
  gate.absolute_seconds = 1e-3;  // of cells of 10 ms: 10 %
  CHECK(LookedAt(gate).rounds(0, 12, {1.08}).pair().verdict == SpeedVerdict::same);
  CHECK(LookedAt(gate).rounds(0, 12, {0.95}).pair().verdict == SpeedVerdict::same);
  CHECK(LookedAt(gate).rounds(0, 12, {1.2}).rounds(48, 24, {1.2}).pair().verdict ==
        SpeedVerdict::slow);
  CHECK(LookedAt(gate).rounds(0, 12, {1.05, 1.15}).pair().verdict == SpeedVerdict::unclear);
}

namespace {

/// So far, of cells whose sides take a second each.
Spending spent(double seconds) { return {seconds, {{"a-base", 1}, {"a-new", 1}, {"a-again", 1}}}; }

}  // namespace

TEST_CASE("rounds that would end too late are not begun, but a confirmation is", "[compare][ab]") {
  Gate gate;
  gate.seconds_most = 100;
  const LookedAt unclear = LookedAt(gate).rounds(0, 12, wide);
  CHECK(unclear.further(spent(64)));  // three cells, twelve rounds: until 100 s
  CHECK_FALSE(unclear.further(spent(65)));
  const LookedAt slow = LookedAt(gate).rounds(0, 12, {1.2});
  REQUIRE(slow.further(spent(99)));
  CHECK(slow.further(spent(99))->drawn);
}

TEST_CASE("the first look is measured in stages where time has a limit", "[compare][ab]") {
  Gate gate;
  CHECK(compare::stages(gate) == std::vector<int>{12});
  gate.seconds_most = 100;
  CHECK(compare::stages(gate) == std::vector<int>{1, 4, 8, 12});
  gate.rounds = 2;
  CHECK(compare::stages(gate) == std::vector<int>{1, 2});
  gate.rounds = 12;
  LookedAt run = LookedAt(gate).rounds(0, 1, {1.0});
  auto next = run.further(spent(10));
  REQUIRE(next);
  CHECK(next->begin == 0);
  CHECK(next->end == 4);
  CHECK_FALSE(next->drawn);
  next = run.rounds(1, 3, {1.0}).further(spent(76));  // eight rounds of three seconds: until 100 s
  REQUIRE(next);
  CHECK(next->end == 8);
  CHECK(next->note.empty());
  CHECK_FALSE(run.further(spent(77)));
  compare::Comparison cut = run.comparison();
  compare::note_time_limit(cut);
  CHECK(cut.pairs[0].verdict == SpeedVerdict::unclear);
  CHECK(cut.pairs[0].reason ==
        "only 4 of the first 12 rounds: the others would have ended after the gate's 100 s");
  CHECK_FALSE(run.rounds(4, 8, {1.0}).further(spent(99)));
  CHECK(run.pair().verdict == SpeedVerdict::same);
}

namespace {

/// Pairs that want more rounds than a limit of 100 s leaves them.
struct Scarce {
  Scarce() {
    Gate gate;
    gate.seconds_most = 100;
    comparison.turns = compare::Turns{"x", "y", 0.03, 0.99, 2, gate};
  }
  /// Whose sides take so many seconds each.
  Pair& add(const std::string& name, int wanted, std::size_t rounds, double seconds) {
    matches.push_back({name, name + "-base", name + "-new", name + "-again"});
    for (const std::string& id : sides_of({name})) spending.of_cells[id] = seconds;
    Pair pair;
    pair.id = name + "-base";
    pair.rounds_wanted = wanted;
    pair.rounds = rounds;
    return comparison.pairs.emplace_back(pair);
  }
  auto further() const { return compare::further(comparison, matches, spending); }

  compare::Comparison comparison;
  std::vector<Match> matches;
  Spending spending;
};

}  // namespace

TEST_CASE("where time is short the cells that take least go on, and others are counted",
          "[compare][ab]") {
  Scarce run;
  run.add("long", 4, 1, 2);         // 11 rounds of 6 s: 66 s
  run.add("short", 4, 1, 0.5);      // 16.5 s
  run.add("middle", 4, 1, 1);       // 33 s
  run.add("ahead", 8, 4, 1.0 / 3);  // 8 s
  run.add("done", 0, 12, 100);
  auto next = run.further();
  REQUIRE(next);
  CHECK(next->end == 4);
  CHECK(next->cells == sides_of({"short", "middle"}));
  CHECK_THAT(next->note, Catch::StartsWith("1 of 4 cells") && Catch::Contains("100 s"));
  run.spending.seconds = 90;  // only what is ahead ends in time
  next = run.further();
  REQUIRE(next);
  CHECK(next->end == 8);
  CHECK(next->cells == sides_of({"ahead"}));
}

TEST_CASE("where time is short what seems to have changed goes on first", "[compare][ab]") {
  Scarce run;
  const auto add = [&run](const std::string& name, double ratio, double seconds,
                          std::size_t rounds) {
    Pair& pair = run.add(name, 24, rounds, seconds);
    pair.base = Spread{0.01, 0.01, 0.01};
    pair.ratio = ratio;
  };
  add("same", 1.001, 1, 12);   // 12 rounds of 3 s: 36 s
  add("slow", 1.07, 2, 12);    // 72 s
  add("fast", 0.9, 0.5, 12);   // 18 s
  add("begun", 1.3, 0.1, 11);  // too early to suspect anything
  auto next = run.further();
  REQUIRE(next);
  CHECK(next->cells == sides_of({"fast", "slow", "begun"}));
  run.spending.seconds = 40;  // "slow" would end too late, and leaves the time to shorter ones
  next = run.further();
  REQUIRE(next);
  CHECK(next->cells == sides_of({"fast", "begun", "same"}));
}

TEST_CASE("beside other programs what is far from 1 has a verdict, of one thread",
          "[compare][ab]") {
  const std::vector<double> noise{0.9, 1.0, 1.15};
  const auto judged = [&](std::vector<double> ratios, const std::vector<double>& controls,
                          int threads) {
    return LookedAt(Gate{}).disturbed(0, 12, ratios, controls).threads(threads).pair();
  };
  const Pair fast = judged({0.4, 0.5, 0.6}, noise, 1);
  CHECK(fast.verdict == SpeedVerdict::fast);
  CHECK(fast.beside_others);
  CHECK(fast.ratio == Approx(0.5));
  CHECK(fast.left_out == 12);
  CHECK(fast.base->median == Approx(0.01));
  CHECK(fast.rounds_wanted == 0);
  CHECK(compare::to_json(fast).at("beside_others") == true);
  // Near 1, or within what the base did against itself, only quiet rounds tell.
  for (const Pair& near : {judged({0.95, 0.98}, {1.0}, 1), judged({1.0}, {1.0}, 1),
                           judged({0.7, 0.75, 0.8}, {0.65, 1.0, 1.5}, 1)}) {
    CHECK(near.verdict == SpeedVerdict::unclear);
    CHECK_FALSE(near.beside_others);
    CHECK(near.rounds_wanted == 24);
  }
  // Threads that wait for each other make a side slower by what the control does not show.
  const Pair two = judged({0.4, 0.5, 0.6}, noise, 2);
  CHECK(two.verdict == SpeedVerdict::unclear);
  CHECK(two.reason ==
        "12 of 12 rounds were preempted: repeat on a quiet machine, or with --threads 1");
  // Quiet rounds that are enough for a verdict need no others.
  const Pair quiet =
      LookedAt(Gate{}).rounds(0, 9, {1.0}).disturbed(9, 3, {0.4}, noise).threads(1).pair();
  CHECK(quiet.verdict == SpeedVerdict::same);
}

TEST_CASE("what is slow beside other programs is confirmed beside them", "[compare][ab]") {
  LookedAt run = LookedAt(Gate{}).disturbed(0, 12, {1.8, 2.0}, {0.9, 1.1}).threads(1);
  CHECK(run.pair().verdict == SpeedVerdict::unclear);
  CHECK(run.pair().confirm_wanted);
  SECTION("by as many rounds") {
    CHECK(run.disturbed(48, 24, {1.7, 2.1}, {1.0}).pair().verdict == SpeedVerdict::slow);
  }
  SECTION("or is not") {
    CHECK(run.disturbed(48, 24, {0.9, 1.1}, {1.0}).pair().verdict == SpeedVerdict::unclear);
  }
}
