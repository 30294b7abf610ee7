#include "harness/compare/paired.hpp"

#include <algorithm>

#include "harness/suite/suite.hpp"
#include "tests/harness/suite/catalogue_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/timed_cell.hpp"

using namespace attnbench;
using compare::Verdict;
using Json = nlohmann::json;

namespace {

const compare::Sides sides{"latte/scan", "latte/fused", "latte/scan, again"};

/// A cell whose round i took medians[i] seconds; none = it has no time.
Json paired_cell(const std::string& label, int length, const std::vector<double>& medians) {
  const std::string id = label + std::to_string(length);
  Json one = test::timed_cell(id, label, medians.empty() ? 0 : medians[0]);
  one["settings"]["length"] = length;
  one["varies"] = {"length"};
  if (medians.empty()) {
    one["status"] = "out_of_memory";
    one.erase("primary");
    one.erase("timing");
    return one;
  }
  for (std::size_t i = 0; i < medians.size(); ++i) {
    one["timing"]["forward"]["rounds"].push_back({{"round", i}, {"median_seconds", medians[i]}});
  }
  return one;
}

/// Other programs had the CPU in these rounds.
void disturb(Json& paired_cell, const std::vector<std::size_t>& rounds,
             const std::string& status = "ok") {
  for (const std::size_t i : rounds) {
    paired_cell["timing"]["forward"]["rounds"][i]["disturbed"] = true;
  }
  paired_cell["status"] = status;
}

Json paired_result(std::vector<Json> cells) {
  return {{"attnbench",
           {{"suite", {{"tasks", {{"kernel", {{"task", "kernel"}, {"axis", "length"}}}}}}},
            {"cells", std::move(cells)}}}};
}

/// Rounds of a machine whose speed wanders by far more than any margin: x times `wander`.
std::vector<double> wandering(double seconds, const std::vector<double>& jitter = {}) {
  const std::vector<double> wander{1, 1.7, 0.8, 2.5, 1.1, 0.6, 3, 1.4};
  std::vector<double> rounds;
  for (std::size_t i = 0; i < wander.size(); ++i) {
    rounds.push_back(seconds * wander[i] * (jitter.empty() ? 1 : jitter[i % jitter.size()]));
  }
  return rounds;
}

compare::Pair one_pair(const std::vector<double>& base, const std::vector<double>& changed,
                       const std::vector<double>& control) {
  const auto comparison = compare::paired(
      paired_result({paired_cell(sides.base, 256, base), paired_cell(sides.changed, 256, changed),
                     paired_cell(sides.control, 256, control)}),
      sides);
  REQUIRE(comparison.pairs.size() == 1);
  return comparison.pairs[0];
}

const std::vector<double> little{1.001, 0.999, 1.002, 0.998};

}  // namespace

TEST_CASE("a disturbance of a round affects both sides, and not their ratio", "[compare]") {
  const auto fast = one_pair(wandering(1), wandering(0.9, little), wandering(1, little));
  CHECK(fast.verdict == Verdict::fast);
  CHECK(fast.ratio == Approx(0.9).epsilon(0.005));
  CHECK(fast.ratio_low == Approx(0.9 * 0.998));
  CHECK(fast.ratio_high == Approx(0.9 * 1.002));
  CHECK(fast.name == "kernel length=256");
  CHECK(fast.what == "forward");
  REQUIRE(fast.control);
  CHECK(fast.control->ratio == Approx(1).epsilon(0.003));
  CHECK(one_pair(wandering(1), wandering(1.2), wandering(1)).verdict == Verdict::slow);
  CHECK(one_pair(wandering(1), wandering(1.01, little), wandering(1)).verdict == Verdict::same);
}

TEST_CASE("an interval across the margin is UNCLEAR, with the reason", "[compare]") {
  const auto wide = one_pair(wandering(1), wandering(1, {0.9, 1.1}), wandering(1));
  CHECK(wide.verdict == Verdict::unclear);
  CHECK_THAT(wide.reason, Catch::Contains("across 1"));
  const auto near = one_pair(wandering(1), wandering(1.04, {0.98, 1.02}), wandering(1));
  CHECK(near.verdict == Verdict::unclear);
  CHECK_THAT(near.reason, Catch::Contains("within the margin"));
}

TEST_CASE("a base that moves against itself leaves no verdict", "[compare]") {
  const auto taken = one_pair(wandering(1), wandering(1.08), wandering(1.1));
  CHECK(taken.verdict == Verdict::unclear);
  CHECK_THAT(taken.reason, Catch::Contains("against itself"));
  CHECK(one_pair(wandering(1), wandering(0.92), wandering(1.1)).verdict == Verdict::unclear);
  CHECK(one_pair(wandering(1), wandering(1), wandering(1.1)).verdict == Verdict::unclear);
  CHECK(one_pair(wandering(1), wandering(1.5), wandering(1.1)).verdict == Verdict::unclear);
  CHECK(one_pair(wandering(1), wandering(0.5), wandering(0.9)).verdict == Verdict::unclear);
  // Within the margin it may.
  CHECK(one_pair(wandering(1), wandering(1.5), wandering(1.02)).verdict == Verdict::slow);
}

TEST_CASE("two sides in slices of the scheduler are not the same", "[compare]") {
  // Seen with both cores busy: 8.00 ms on both sides, SAME at 1.000 [0.998, 1.003], where 0.3 ms is
  // right on a quiet machine.
  const std::vector<double> slices{8.00e-3, 8.01e-3, 7.99e-3, 8.00e-3, 8.02e-3,
                                   8.00e-3, 7.99e-3, 8.00e-3, 8.01e-3, 8.00e-3};
  CHECK(one_pair(slices, slices, slices).verdict == Verdict::same);  // what it was called
  for (const char* side : {"latte/scan", "latte/fused", "latte/scan, again"}) {
    std::vector<Json> cells{paired_cell(sides.base, 256, slices),
                            paired_cell(sides.changed, 256, slices),
                            paired_cell(sides.control, 256, slices)};
    for (Json& one : cells) {
      if (one["label"] == side) disturb(one, {0, 1, 2, 4, 5, 7});
    }
    const auto comparison = compare::paired(paired_result(cells), sides);
    const auto& pair = comparison.pairs.at(0);
    INFO(side);
    CHECK(pair.verdict == Verdict::unclear);
    CHECK(pair.reason == "6 of 10 rounds were preempted: repeat on a quiet machine");
    CHECK(pair.rounds == 10);
    CHECK(pair.left_out == 6);
    CHECK(pair.base_rounds == 4);
    CHECK(compare::exit_code(comparison, false) == ExitCode::undecided);
    CHECK(compare::exit_code(comparison, true) == ExitCode::undecided);
  }
}

TEST_CASE("no verdict comes from disturbed rounds alone, and no ratio", "[compare]") {
  const std::vector<double> base(8, 8e-3), half(8, 4e-3);
  std::vector<Json> cells{paired_cell(sides.base, 256, base),
                          paired_cell(sides.changed, 256, half)};
  for (Json& one : cells) disturb(one, {0, 1, 2, 3, 4, 5, 6, 7}, "disturbed");
  const auto comparison = compare::paired(paired_result(cells), sides);
  const auto& pair = comparison.pairs.at(0);
  CHECK(pair.verdict == Verdict::unclear);
  CHECK(pair.reason == "8 of 8 rounds were preempted: repeat on a quiet machine");
  CHECK(pair.ratio == 0);
  const Json json = compare::to_json(comparison)["pairs"][0];
  CHECK_FALSE(json.contains("ratio"));
  CHECK(json["base"]["median_seconds"] == 8e-3);
  CHECK(json["rounds"] == 8);
  CHECK(json["rounds_left_out"] == 8);
  const std::string text = compare::to_text(comparison, 120, false);
  CHECK_THAT(text, Catch::Contains("8.00 ms") && Catch::Contains("1 UNCLEAR") &&
                       !Catch::Contains("[") &&
                       Catch::Contains("Left out: 8 of 8 rounds, in which other programs had"));
}

TEST_CASE("the undisturbed rounds may decide, and the others are counted", "[compare]") {
  std::vector<double> base = wandering(1), slower = wandering(1.2);
  base[3] = 0.1;  // a round that would widen the interval beyond any verdict
  slower[5] = 100;
  std::vector<Json> cells{paired_cell(sides.base, 256, base),
                          paired_cell(sides.changed, 256, slower),
                          paired_cell(sides.control, 256, wandering(1))};
  CHECK(compare::paired(paired_result(cells), sides).pairs.at(0).ratio_high > 10);
  disturb(cells[0], {3});
  disturb(cells[1], {5});
  const auto comparison = compare::paired(paired_result(cells), sides);
  const auto& pair = comparison.pairs.at(0);
  CHECK(pair.verdict == Verdict::slow);
  CHECK(pair.ratio == Approx(1.2));
  CHECK(pair.left_out == 2);
  CHECK(pair.base_rounds == 6);
  REQUIRE(pair.control);
  CHECK(pair.control->high == Approx(1));
  CHECK(pair.base->low > 0.5);  // of the rounds that count
  const std::string text = compare::to_text(comparison, 160, false);
  CHECK_THAT(text, Catch::Contains("SLOW  without 2 of 8 rounds, disturbed") &&
                       Catch::Contains("Left out: 2 of 8 rounds"));
  SECTION("but not that of a cell which is disturbed as a whole") {
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<Json> some = cells;
      some[i]["status"] = "disturbed";
      some[i]["reason"] = "its interval spans more than twice its low end";
      const auto held = compare::paired(paired_result(some), sides).pairs.at(0);
      CHECK(held.verdict == Verdict::unclear);
      CHECK_THAT(held.reason, Catch::Contains("spans more than twice") &&
                                  Catch::Contains("repeat on a quiet machine"));
    }
  }
  SECTION("nor that of one which crashed in a later round") {
    cells[1]["status"] = "crashed";
    const auto held = compare::paired(paired_result(cells), sides).pairs.at(0);
    CHECK(held.verdict == Verdict::unclear);
    CHECK(held.reason == "base: ok; new: crashed");
  }
}

TEST_CASE("a round that was measured again counts", "[compare]") {
  std::vector<Json> cells{paired_cell(sides.base, 256, {1, 1, 1, 1, 1, 1}),
                          paired_cell(sides.changed, 256, {2, 2, 2, 2, 2, 2})};
  Json& rounds = cells[1]["timing"]["forward"]["rounds"];
  rounds.push_back(rounds[2]);
  rounds[2]["disturbed"] = true;
  rounds[2]["median_seconds"] = 50;
  const auto pair = compare::paired(paired_result(cells), sides).pairs.at(0);
  CHECK(pair.verdict == Verdict::slow);
  CHECK(pair.ratio_high == Approx(2));
  CHECK(pair.left_out == 0);
}

TEST_CASE("too few rounds give no verdict, and it is said how many would", "[compare]") {
  const auto pair = one_pair({1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}, {1, 1, 1, 1, 1});
  CHECK(pair.verdict == Verdict::unclear);
  CHECK(pair.reason == "5 rounds give no interval; --rounds 6 would");
  CHECK(pair.ratio == Approx(2));
  CHECK(one_pair({1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2}, {1, 1, 1, 1, 1, 1}).verdict ==
        Verdict::slow);
}

TEST_CASE("more sizes ask for more rounds: all verdicts together are wrong in one of twenty",
          "[compare]") {
  std::vector<Json> cells;
  for (const int length : {256, 512, 1024, 2048}) {
    cells.push_back(paired_cell(sides.base, length, {1, 1, 1, 1, 1, 1, 1}));
    cells.push_back(paired_cell(sides.changed, length, {2, 2, 2, 2, 2, 2, 2}));
  }
  const auto comparison = compare::paired(paired_result(cells), sides);
  REQUIRE(comparison.turns);
  CHECK(comparison.turns->confidence == Approx(1 - 0.05 / 4));
  for (const auto& pair : comparison.pairs) {
    CHECK(pair.verdict == Verdict::unclear);
    CHECK(pair.reason == "7 rounds give no interval; --rounds 8 would");
  }
}

TEST_CASE("only rounds that both sides have are compared", "[compare]") {
  Json base = paired_cell(sides.base, 256, {1, 2, 4, 1, 2, 4, 1});
  Json changed = paired_cell(sides.changed, 256, {2, 4, 8, 2, 4, 8, 2});
  changed["timing"]["forward"]["rounds"].erase(1);
  const auto pair = compare::paired(paired_result({base, changed}), sides).pairs.at(0);
  CHECK(pair.base_rounds == 6);
  CHECK(pair.ratio == Approx(2));
  CHECK(pair.verdict == Verdict::slow);
  CHECK_FALSE(pair.control);
}

TEST_CASE("a size that one side cannot do says so, and the others have their verdicts",
          "[compare]") {
  const auto comparison =
      compare::paired(paired_result({paired_cell(sides.base, 256, wandering(1)),
                                     paired_cell(sides.changed, 256, wandering(2)),
                                     paired_cell(sides.base, 512, wandering(1)),
                                     paired_cell(sides.changed, 512, {}),
                                     paired_cell(sides.base, 1024, wandering(1))}),
                      sides);
  REQUIRE(comparison.pairs.size() == 3);
  CHECK(comparison.pairs[0].verdict == Verdict::slow);
  CHECK(comparison.pairs[1].verdict == Verdict::unclear);
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
  const auto code = [](std::vector<Verdict> verdicts, bool gate) {
    compare::Comparison comparison;
    for (const Verdict verdict : verdicts) {
      comparison.pairs.emplace_back().verdict = verdict;
    }
    return compare::exit_code(comparison, gate);
  };
  CHECK(code({Verdict::fast, Verdict::slow, Verdict::same}, false) == ExitCode::done);
  CHECK(code({Verdict::fast, Verdict::slow, Verdict::same}, true) == ExitCode::failed);
  CHECK(code({Verdict::fast, Verdict::same}, true) == ExitCode::done);
  CHECK(code({Verdict::fast, Verdict::unclear}, true) == ExitCode::undecided);
  CHECK(code({Verdict::slow, Verdict::unclear}, false) == ExitCode::undecided);
  CHECK(code({Verdict::slow, Verdict::unclear}, true) == ExitCode::failed);
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
  for (const run::Cell& one : compare::in_turns(expanded.cells)) {
    order.push_back(plain_text(one.settings.at("length")) + " " + one.label);
  }
  CHECK(order == std::vector<std::string>{"256 latte/scan", "256 latte/fused",
                                          "256 latte/scan, again", "512 latte/scan",
                                          "512 latte/fused", "512 latte/scan, again"});
}
