#include "harness/compare/paired.hpp"

#include <algorithm>

#include "harness/suite/suite.hpp"
#include "tests/harness/suite/catalogue_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using compare::Verdict;
using Json = nlohmann::json;

namespace {

const compare::Sides sides{"latte/scan", "latte/fused", "latte/scan, again"};

/// A cell whose round i took medians[i] seconds; none = it has no time.
Json cell(const std::string& label, int length, const std::vector<double>& medians) {
  Json one = {{"id", label + std::to_string(length)},
              {"label", label},
              {"task", "kernel"},
              {"task_label", "kernel"},
              {"mechanism", "latte"},
              {"options", Json::object()},
              {"settings", {{"length", length}}},
              {"varies", {"length"}},
              {"status", medians.empty() ? "out_of_memory" : "ok"}};
  if (medians.empty()) return one;
  Json rounds = Json::array();
  for (std::size_t i = 0; i < medians.size(); ++i) {
    rounds.push_back({{"round", i}, {"median_seconds", medians[i]}});
  }
  one["primary"] = "forward";
  one["timing"]["forward"] = {{"median_seconds", medians[0]},
                              {"low_seconds", medians[0]},
                              {"high_seconds", medians[0]},
                              {"rounds", rounds}};
  return one;
}

Json result_of(std::vector<Json> cells) {
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
  const auto comparison =
      compare::paired(result_of({cell(sides.base, 256, base), cell(sides.changed, 256, changed),
                                 cell(sides.control, 256, control)}),
                      sides);
  REQUIRE(comparison.pairs.size() == 1);
  return comparison.pairs[0];
}

const std::vector<double> little{1.001, 0.999, 1.002, 0.998};

}  // namespace

TEST_CASE("what the machine does to a round falls on both sides, and not on their ratio",
          "[compare]") {
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

TEST_CASE("a base that moves against itself takes as much from the verdict", "[compare]") {
  const auto taken = one_pair(wandering(1), wandering(1.08), wandering(1.1));
  CHECK(taken.verdict == Verdict::unclear);
  CHECK_THAT(taken.reason, Catch::Contains("against itself"));
  CHECK(one_pair(wandering(1), wandering(0.92), wandering(1.1)).verdict == Verdict::unclear);
  CHECK(one_pair(wandering(1), wandering(1), wandering(1.1)).verdict == Verdict::unclear);
  // Beyond what it moved by, a difference is one.
  CHECK(one_pair(wandering(1), wandering(1.5), wandering(1.1)).verdict == Verdict::slow);
  CHECK(one_pair(wandering(1), wandering(0.5), wandering(0.9)).verdict == Verdict::fast);
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
    cells.push_back(cell(sides.base, length, {1, 1, 1, 1, 1, 1, 1}));
    cells.push_back(cell(sides.changed, length, {2, 2, 2, 2, 2, 2, 2}));
  }
  const auto comparison = compare::paired(result_of(cells), sides);
  REQUIRE(comparison.turns);
  CHECK(comparison.turns->confidence == Approx(1 - 0.05 / 4));
  for (const auto& pair : comparison.pairs) {
    CHECK(pair.verdict == Verdict::unclear);
    CHECK(pair.reason == "7 rounds give no interval; --rounds 8 would");
  }
}

TEST_CASE("only rounds that both sides have are compared", "[compare]") {
  Json base = cell(sides.base, 256, {1, 2, 4, 1, 2, 4, 1});
  Json changed = cell(sides.changed, 256, {2, 4, 8, 2, 4, 8, 2});
  changed["timing"]["forward"]["rounds"].erase(1);
  const auto pair = compare::paired(result_of({base, changed}), sides).pairs.at(0);
  CHECK(pair.base_rounds == 6);
  CHECK(pair.ratio == Approx(2));
  CHECK(pair.verdict == Verdict::slow);
  CHECK_FALSE(pair.control);
}

TEST_CASE("a size that one side cannot do says so, and the others have their verdicts",
          "[compare]") {
  const auto comparison = compare::paired(
      result_of({cell(sides.base, 256, wandering(1)), cell(sides.changed, 256, wandering(2)),
                 cell(sides.base, 512, wandering(1)), cell(sides.changed, 512, {}),
                 cell(sides.base, 1024, wandering(1))}),
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
  for (const Json& one : compare::in_turns(expanded.cells)) {
    order.push_back(one["settings"]["length"].dump() + " " + one["label"].get<std::string>());
  }
  CHECK(order == std::vector<std::string>{"256 latte/scan", "256 latte/fused",
                                          "256 latte/scan, again", "512 latte/scan",
                                          "512 latte/fused", "512 latte/scan, again"});
}
