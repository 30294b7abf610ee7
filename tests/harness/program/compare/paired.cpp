#include "harness/program/compare/paired.hpp"

#include <algorithm>

#include "harness/program/suite/suite.hpp"
#include "tests/harness/program/suite/catalogue_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using compare::SpeedVerdict;
using result::CellRecord;
using test::CellBuilder;
using Medians = std::vector<double>;

namespace {

const compare::Sides sides{"latte/scan", "latte/fused", "latte/scan, again"};

/// A cell whose round i took medians[i] seconds.
CellBuilder side(const std::string& label, int length, const Medians& medians) {
  CellBuilder one(label);
  one.named(label + std::to_string(length)).length(length).rounds(medians);
  one.varies = std::vector<std::string>{"length"};
  return one;
}

compare::Comparison compared(std::vector<CellRecord> cells) {
  return compare::paired(test::result_of(std::move(cells)), sides);
}

/// Base, new and, unless it is empty, the base once more.
std::vector<CellRecord> three(const Medians& base, const Medians& changed,
                              const Medians& control = {}) {
  std::vector<CellRecord> cells{side(sides.base, 256, base), side(sides.changed, 256, changed)};
  if (!control.empty()) cells.push_back(side(sides.control, 256, control));
  return cells;
}

compare::Pair pair_of(std::vector<CellRecord> cells) {
  const auto comparison = compared(std::move(cells));
  REQUIRE(comparison.pairs.size() == 1);
  return comparison.pairs[0];
}

void disturb(CellRecord& cell, const std::vector<std::size_t>& rounds) {
  for (const std::size_t i : rounds) cell.timing["forward"].rounds[i].disturbed = true;
}

/// Rounds of a machine whose speed wanders by far more than any margin: x times `wander`.
Medians wandering(double seconds, const Medians& jitter = {1}) {
  Medians rounds{1, 1.7, 0.8, 2.5, 1.1, 0.6, 3, 1.4};
  for (std::size_t i = 0; i < rounds.size(); ++i) rounds[i] *= seconds * jitter[i % jitter.size()];
  return rounds;
}

const Medians little{1.001, 0.999, 1.002, 0.998};

}  // namespace

TEST_CASE("a disturbance of a round affects both sides, and not their ratio", "[compare]") {
  const auto fast = pair_of(three(wandering(1), wandering(0.9, little), wandering(1, little)));
  CHECK(fast.verdict == SpeedVerdict::fast);
  CHECK(fast.ratio == Approx(0.9).epsilon(0.005));
  CHECK(fast.ratio_low == Approx(0.9 * 0.998));
  CHECK(fast.ratio_high == Approx(0.9 * 1.002));
  CHECK(fast.name == "kernel length=256");
  CHECK(fast.what == "forward");
  REQUIRE(fast.control);
  CHECK(fast.control->ratio == Approx(1).epsilon(0.003));
  const auto verdict = [](const Medians& changed, double control = 1) {
    return pair_of(three(wandering(1), changed, wandering(control))).verdict;
  };
  CHECK(verdict(wandering(1.2)) == SpeedVerdict::slow);
  CHECK(verdict(wandering(1.01, little)) == SpeedVerdict::same);
  // An interval across the margin is UNCLEAR, with the reason.
  const auto wide = pair_of(three(wandering(1), wandering(1, {0.9, 1.1}), wandering(1)));
  CHECK(wide.verdict == SpeedVerdict::unclear);
  CHECK_THAT(wide.reason, Catch::Contains("across 1"));
  const auto near = pair_of(three(wandering(1), wandering(1.04, {0.98, 1.02}), wandering(1)));
  CHECK(near.verdict == SpeedVerdict::unclear);
  CHECK_THAT(near.reason, Catch::Contains("within the margin"));
  // A base that moves against itself leaves no verdict.
  CHECK_THAT(pair_of(three(wandering(1), wandering(1.08), wandering(1.1))).reason,
             Catch::Contains("against itself"));
  for (const double ratio : {1.08, 0.92, 1.0, 1.5}) {
    CHECK(verdict(wandering(ratio), 1.1) == SpeedVerdict::unclear);
  }
  CHECK(verdict(wandering(0.5), 0.9) == SpeedVerdict::unclear);
  CHECK(verdict(wandering(1.5), 1.02) == SpeedVerdict::slow);  // within the margin it may
}

TEST_CASE("two sides in slices of the scheduler are not the same", "[compare]") {
  // Seen with both cores busy: 8.00 ms on both sides, SAME at 1.000 [0.998, 1.003], where 0.3 ms is
  // right on a quiet machine.
  const Medians slices{8.00e-3, 8.01e-3, 7.99e-3, 8.00e-3, 8.02e-3,
                       8.00e-3, 7.99e-3, 8.00e-3, 8.01e-3, 8.00e-3};
  const auto cells = three(slices, slices, slices);
  CHECK(pair_of(cells).verdict == SpeedVerdict::same);  // what it was called
  for (std::size_t i = 0; i < 3; ++i) {
    auto disturbed = cells;
    disturb(disturbed[i], {0, 1, 2, 4, 5, 7});
    const auto comparison = compared(disturbed);
    const auto& pair = comparison.pairs.at(0);
    INFO(disturbed[i].label);
    CHECK(pair.verdict == SpeedVerdict::unclear);
    CHECK(pair.reason == "6 of 10 rounds were preempted: repeat on a quiet machine");
    CHECK(pair.rounds == 10);
    CHECK(pair.left_out == 6);
    CHECK(pair.base_rounds == 4);
    CHECK(compare::exit_code(comparison, true) == ExitCode::undecided);
  }
}

TEST_CASE("no verdict comes from disturbed rounds alone, and no ratio", "[compare]") {
  auto cells = three(Medians(8, 8e-3), Medians(8, 4e-3));
  for (CellRecord& one : cells) {
    disturb(one, {0, 1, 2, 3, 4, 5, 6, 7});
    one.status = Status::disturbed;
  }
  const auto comparison = compared(cells);
  const auto& pair = comparison.pairs.at(0);
  CHECK(pair.verdict == SpeedVerdict::unclear);
  CHECK(pair.reason == "8 of 8 rounds were preempted: repeat on a quiet machine");
  CHECK(pair.ratio == 0);
  const Json json = compare::to_json(comparison)["pairs"][0];
  CHECK_FALSE(json.contains("ratio"));
  CHECK(json["base"]["median_seconds"] == 8e-3);
  CHECK(json["rounds"] == 8);
  CHECK(json["rounds_left_out"] == 8);
  CHECK_THAT(compare::to_text(comparison, 120, false),
             Catch::Contains("8.00 ms") && Catch::Contains("1 UNCLEAR") && !Catch::Contains("[") &&
                 Catch::Contains("Left out: 8 of 8 rounds, in which other programs had"));
}

TEST_CASE("the undisturbed rounds may decide, and the others are counted", "[compare]") {
  Medians base = wandering(1), slower = wandering(1.2);
  base[3] = 0.1;  // a round that would widen the interval beyond any verdict
  slower[5] = 100;
  auto cells = three(base, slower, wandering(1));
  CHECK(pair_of(cells).ratio_high > 10);
  disturb(cells[0], {3});
  disturb(cells[1], {5});
  const auto comparison = compared(cells);
  const auto& pair = comparison.pairs.at(0);
  CHECK(pair.verdict == SpeedVerdict::slow);
  CHECK(pair.ratio == Approx(1.2));
  CHECK(pair.left_out == 2);
  CHECK(pair.base_rounds == 6);
  REQUIRE(pair.control);
  CHECK(pair.control->high == Approx(1));
  CHECK(pair.base->low > 0.5);  // of the rounds that count
  CHECK_THAT(compare::to_text(comparison, 160, false),
             Catch::Contains("SLOW  without 2 of 8 rounds, disturbed") &&
                 Catch::Contains("Left out: 2 of 8 rounds"));
  // But not those of a cell which is disturbed as a whole, or crashed in a later round.
  for (std::size_t i = 0; i < 3; ++i) {
    auto some = cells;
    some[i].status = Status::disturbed;
    some[i].reason = "its interval spans more than twice its low end";
    const auto held = pair_of(some);
    CHECK(held.verdict == SpeedVerdict::unclear);
    CHECK_THAT(held.reason, Catch::Contains("spans more than twice") &&
                                Catch::Contains("repeat on a quiet machine"));
  }
  cells[1].status = Status::crashed;
  CHECK(pair_of(cells).verdict == SpeedVerdict::unclear);
  CHECK(pair_of(cells).reason == "base: ok; new: crashed");
}

TEST_CASE("rounds count that both sides have; of one measured again the last", "[compare]") {
  auto cells = three(Medians(6, 1), Medians(6, 2));
  auto& rounds = cells[1].timing["forward"].rounds;
  rounds.push_back(rounds[2]);
  rounds[2].disturbed = true;
  rounds[2].median_seconds = 50;
  auto pair = pair_of(cells);
  CHECK(pair.verdict == SpeedVerdict::slow);
  CHECK(pair.ratio_high == Approx(2));
  CHECK(pair.left_out == 0);
  cells = three({1, 2, 4, 1, 2, 4, 1}, {2, 4, 8, 2, 4, 8, 2});
  auto& fewer = cells[1].timing["forward"].rounds;
  fewer.erase(fewer.begin() + 1);
  pair = pair_of(cells);
  CHECK(pair.base_rounds == 6);
  CHECK(pair.ratio == Approx(2));
  CHECK(pair.verdict == SpeedVerdict::slow);
  CHECK_FALSE(pair.control);
}

TEST_CASE("too few rounds give no verdict, and it is said how many would", "[compare]") {
  const auto pair = pair_of(three(Medians(5, 1), Medians(5, 2), Medians(5, 1)));
  CHECK(pair.verdict == SpeedVerdict::unclear);
  CHECK(pair.reason == "5 rounds give no interval; --rounds 6 would");
  CHECK(pair.ratio == Approx(2));
  // More sizes ask for more: all verdicts together are wrong in one of twenty.
  std::vector<CellRecord> cells;
  for (const int length : {256, 512, 1024, 2048}) {
    cells.push_back(side(sides.base, length, Medians(7, 1)));
    cells.push_back(side(sides.changed, length, Medians(7, 2)));
  }
  const auto comparison = compared(cells);
  REQUIRE(comparison.turns);
  CHECK(comparison.turns->confidence == Approx(1 - 0.05 / 4));
  for (const auto& one : comparison.pairs) {
    CHECK(one.verdict == SpeedVerdict::unclear);
    CHECK(one.reason == "7 rounds give no interval; --rounds 8 would");
  }
}

TEST_CASE("a size that one side cannot do says so, and the others have their verdicts",
          "[compare]") {
  const auto comparison =
      compared({side(sides.base, 256, wandering(1)), side(sides.changed, 256, wandering(2)),
                side(sides.base, 512, wandering(1)),
                side(sides.changed, 512, {1}).untimed().ended(Status::out_of_memory),
                side(sides.base, 1024, wandering(1))});
  REQUIRE(comparison.pairs.size() == 3);
  CHECK(comparison.pairs[0].verdict == SpeedVerdict::slow);
  CHECK(comparison.pairs[1].verdict == SpeedVerdict::unclear);
  CHECK(comparison.pairs[1].reason == "base: ok; new: out_of_memory");
  CHECK(comparison.pairs[2].reason == "base: ok; new: no such cell");
  const std::string text = compare::to_text(comparison, 120, false);
  CHECK_THAT(text, Catch::StartsWith("base  latte/scan\nnew   latte/fused\n") &&
                       Catch::Contains("kernel length=256 forward") && Catch::Contains("SLOW") &&
                       Catch::Contains("1 SLOW, 2 UNCLEAR") && Catch::Contains("(95.0 %)") &&
                       Catch::Contains("within 3.0 %") && !Catch::Contains("disjoint"));
  const Json json = compare::to_json(comparison);
  CHECK(json["turns"]["base"] == "latte/scan");
  CHECK(json["pairs"][0]["verdict"] == "SLOW");
  CHECK_FALSE(json["pairs"][1].contains("ratio"));
}

TEST_CASE("a gate fails on SLOW, and passes nothing that is UNCLEAR", "[compare]") {
  const auto code = [](std::vector<SpeedVerdict> verdicts, bool gate) {
    compare::Comparison comparison;
    for (const SpeedVerdict verdict : verdicts) {
      comparison.pairs.emplace_back().verdict = verdict;
    }
    return compare::exit_code(comparison, gate);
  };
  CHECK(code({SpeedVerdict::fast, SpeedVerdict::slow, SpeedVerdict::same}, false) ==
        ExitCode::done);
  CHECK(code({SpeedVerdict::fast, SpeedVerdict::slow, SpeedVerdict::same}, true) ==
        ExitCode::failed);
  CHECK(code({SpeedVerdict::fast, SpeedVerdict::same}, true) == ExitCode::done);
  CHECK(code({SpeedVerdict::fast, SpeedVerdict::unclear}, true) == ExitCode::undecided);
  CHECK(code({SpeedVerdict::slow, SpeedVerdict::unclear}, false) == ExitCode::undecided);
  CHECK(code({SpeedVerdict::slow, SpeedVerdict::unclear}, true) == ExitCode::failed);
  // Nothing was judged: one side lacks each cell, or both ended alike without a time.
  CHECK(code({}, true) == ExitCode::undecided);
  CHECK(code({SpeedVerdict::gone, SpeedVerdict::added}, true) == ExitCode::undecided);
  CHECK(code({SpeedVerdict::same}, false) == ExitCode::undecided);
}

TEST_CASE("cells of one size stand side by side, in the order of the sizes", "[compare]") {
  suite::Choices choices;
  choices.set = {"length=256,512", "pattern=causal"};
  const auto expanded =
      suite::expand(suite::pair_from_command_line("latte/scan", "latte/fused", "latte/scan, again"),
                    test::catalogue(), choices);
  CHECK(expanded.header["name"] == "ab-latte-scan-latte-fused");
  CHECK(expanded.measure["rounds"] == 12);
  std::vector<std::string> order;
  for (const Cell& one : compare::in_turns(expanded.cells)) {
    order.push_back(plain_text(one.settings.at("length")) + " " + one.label);
  }
  CHECK(order == std::vector<std::string>{"256 latte/scan", "256 latte/fused",
                                          "256 latte/scan, again", "512 latte/scan",
                                          "512 latte/fused", "512 latte/scan, again"});
}
