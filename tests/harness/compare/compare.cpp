#include "harness/compare/compare.hpp"

#include <algorithm>

#include "core/result/document.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/timed_cell.hpp"

using namespace attnbench;
using compare::Verdict;
using Json = nlohmann::json;

namespace {

/// A result of one cell with the rounds' medians and probes.
Json result_of(const std::vector<double>& medians, const std::vector<double>& probes) {
  Json rounds = Json::array();
  for (std::size_t i = 0; i < medians.size(); ++i) {
    rounds.push_back({{"median_seconds", medians[i]}, {"calibration_seconds", probes[i]}});
  }
  Json cell = test::timed_cell("a", "latte", medians[0]);
  cell["timing"]["forward"]["rounds"] = rounds;
  return {{"attnbench",
           {{"suite", {{"tasks", {{"kernel", {{"axis", "length"}}}}}}},
            {"run", {{"threads", 2}, {"seed", 1}}},
            {"machine", {{"host", "h"}, {"cpu_model", "c"}}},
            {"provenance", {{"commit", "1"}}},
            {"cells", Json::array({cell})}}}};
}

const std::vector<double> steady_probes{0.01, 0.01, 0.01};

Verdict verdict_of(const Json& base, const Json& changed) {
  const auto comparison = compare::compare(base, changed);
  REQUIRE(comparison.pairs.size() == 1);
  return comparison.pairs[0].verdict;
}

}  // namespace

TEST_CASE("intervals apart by more than the margin are SLOW or FAST", "[compare]") {
  const Json base = result_of({1.00, 1.01, 0.99}, steady_probes);
  const Json slower = result_of({1.10, 1.12, 1.09}, steady_probes);
  CHECK(verdict_of(base, slower) == Verdict::slow);
  CHECK(verdict_of(slower, base) == Verdict::fast);
  const auto pair = compare::compare(base, slower).pairs[0];
  CHECK(pair.ratio == Approx(1.10));
  CHECK(pair.ratio_low == Approx(1.09 / 1.01));
  CHECK(pair.ratio_high == Approx(1.12 / 0.99));
  CHECK(pair.calibrated_ratio == Approx(1.10));
  CHECK(pair.disjoint);
  CHECK(pair.what == "forward");
  CHECK(pair.name == "kernel latte length=1024");
}

TEST_CASE("narrow intervals around 1 are SAME, wide ones UNCLEAR", "[compare]") {
  CHECK(verdict_of(result_of({1.00, 1.01, 0.99}, steady_probes),
                   result_of({1.0, 1.0, 1.01}, steady_probes)) == Verdict::same);
  CHECK(verdict_of(result_of({1.00, 1.10, 0.90}, steady_probes),
                   result_of({1.0, 1.1, 0.95}, steady_probes)) == Verdict::unclear);
}

TEST_CASE("disjoint intervals within the margin are not SLOW", "[compare]") {
  const auto pair = compare::compare(result_of({1.000, 1.001, 1.002}, steady_probes),
                                     result_of({1.020, 1.021, 1.050}, steady_probes))
                        .pairs[0];
  CHECK(pair.verdict == Verdict::unclear);
  CHECK(pair.disjoint);
  CHECK_THAT(pair.reason, Catch::Contains("margin"));
}

TEST_CASE("a machine that ran slower as a whole is no SLOW", "[compare]") {
  const auto pair = compare::compare(result_of({1.00, 1.01, 0.99}, steady_probes),
                                     result_of({1.20, 1.21, 1.19}, {0.012, 0.012, 0.012}))
                        .pairs[0];
  CHECK(pair.verdict == Verdict::unclear);
  CHECK(pair.calibrated_ratio == Approx(1.0));
  CHECK_THAT(pair.reason, Catch::Contains("calibrated"));
}

TEST_CASE("too few rounds and other machines allow no verdict", "[compare]") {
  const Json base = result_of({1.00, 1.01, 0.99}, steady_probes);
  const Json few = result_of({2.0, 2.0}, {0.01, 0.01});
  CHECK(verdict_of(base, few) == Verdict::unclear);
  Json elsewhere = result_of({2.0, 2.0, 2.0}, steady_probes);
  CHECK(verdict_of(base, elsewhere) == Verdict::slow);
  SECTION("another host") { elsewhere["attnbench"]["machine"]["host"] = "other"; }
  SECTION("other threads") { elsewhere["attnbench"]["run"]["threads"] = 4; }
  SECTION("a machine not told") { elsewhere["attnbench"]["machine"].erase("cpu_model"); }
  CHECK(verdict_of(base, elsewhere) == Verdict::unclear);
  CHECK_FALSE(compare::one_machine(base, elsewhere));
}

TEST_CASE("another device under the same word allows no verdict", "[compare]") {
  const auto on = [](const Json& devices) {
    Json result = result_of({1.00, 1.01, 0.99}, steady_probes);
    result["attnbench"]["machine"]["devices"] = devices;
    return result;
  };
  const Json one{{"cuda", {{"name", "one"}}}};
  CHECK(compare::one_machine(on(one), on(one)));
  CHECK_FALSE(compare::one_machine(on(one), on({{"cuda", {{"name", "other"}}}})));
  CHECK(compare::one_machine(on(one), on({{"cuda:1", {{"name", "other"}}}})));
  CHECK(compare::one_machine(on(one), result_of({1.00, 1.01, 0.99}, steady_probes)));
}

TEST_CASE("cells of one side only are NEW or GONE", "[compare]") {
  const Json base = result_of({1, 1, 1}, steady_probes);
  Json other = base;
  other["attnbench"]["cells"][0]["id"] = "b";
  const auto comparison = compare::compare(base, other);
  REQUIRE(comparison.pairs.size() == 2);
  CHECK(comparison.pairs[0].verdict == Verdict::gone);
  CHECK(comparison.pairs[1].verdict == Verdict::added);
  CHECK(comparison.timed == 0);
}

TEST_CASE("a cell that lost its time says why", "[compare]") {
  const Json base = result_of({1, 1, 1}, steady_probes);
  Json broken = base;
  broken["attnbench"]["cells"][0].erase("timing");
  broken["attnbench"]["cells"][0].erase("primary");
  broken["attnbench"]["cells"][0]["status"] = "timeout";
  const auto pair = compare::compare(base, broken).pairs[0];
  CHECK(pair.verdict == Verdict::unclear);
  CHECK(pair.reason == "ok, then timeout");
  CHECK(compare::compare(broken, broken).pairs[0].verdict == Verdict::same);
}

TEST_CASE("disturbed rounds of results measured apart enter no verdict", "[compare]") {
  const auto disturbed = [](Json result, std::size_t count) {
    Json& rounds = result["attnbench"]["cells"][0]["timing"]["forward"]["rounds"];
    for (std::size_t i = 0; i < count; ++i) rounds[i]["disturbed"] = true;
    return result;
  };
  const std::vector<double> probes(5, 0.01);
  const Json slices = result_of({8.0, 8.01, 7.99, 8.0, 8.0}, probes);
  CHECK(verdict_of(slices, slices) == Verdict::same);
  const auto few = compare::compare(disturbed(slices, 3), disturbed(slices, 4)).pairs.at(0);
  CHECK(few.verdict == Verdict::unclear);
  CHECK(few.reason == "7 of 10 rounds were preempted: repeat on a quiet machine");
  const auto none = compare::compare(disturbed(slices, 5), slices).pairs.at(0);
  CHECK(none.verdict == Verdict::unclear);
  CHECK_FALSE(none.base);
  // Three of five are enough, and they alone decide.
  const Json mixed = disturbed(result_of({50, 60, 2.2, 2.21, 2.19}, probes), 2);
  const Json base = result_of({2.0, 2.01, 1.99, 2.0, 2.0}, probes);
  const auto slower = compare::compare(base, mixed).pairs.at(0);
  CHECK(slower.verdict == Verdict::slow);
  CHECK(slower.ratio == Approx(1.1));
  CHECK(slower.left_out == 2);
  CHECK_THAT(compare::to_text(compare::compare(base, mixed), 160, false),
             Catch::Contains("without 2 of 10 rounds, disturbed"));
}

TEST_CASE("a cell that is disturbed in either result is UNCLEAR", "[compare]") {
  const Json base = result_of({1.00, 1.01, 0.99}, steady_probes);
  Json changed = result_of({2.0, 2.0, 2.0}, steady_probes);
  changed["attnbench"]["cells"][0]["status"] = "disturbed";
  for (const auto& [one, other] : {std::pair{base, changed}, std::pair{changed, base}}) {
    const auto pair = compare::compare(one, other).pairs.at(0);
    CHECK(pair.verdict == Verdict::unclear);
    CHECK_THAT(pair.reason, Catch::Contains("disturbed") && Catch::Contains("quiet machine"));
  }
  CHECK(verdict_of(changed, changed) == Verdict::unclear);
  changed["attnbench"]["cells"][0].erase("timing");
  changed["attnbench"]["cells"][0].erase("primary");
  CHECK(verdict_of(changed, changed) == Verdict::unclear);
}

TEST_CASE("differences of provenance are shown", "[compare]") {
  const Json base = result_of({1, 1, 1}, steady_probes);
  Json other = base;
  other["attnbench"]["run"]["seed"] = 2;
  other["attnbench"]["provenance"]["binary"] = "ff";
  CHECK(compare::differences_of(base, base).empty());
  CHECK(compare::differences_of(base, other) ==
        std::vector<std::string>{"seed: 1, then 2", "binary: not said, then ff"});
}

TEST_CASE("the share of disjoint intervals stands beside what chance gives", "[compare]") {
  CHECK(compare::disjoint_by_chance(3, 3) == Approx(0.1));
  CHECK(compare::disjoint_by_chance(5, 5) == Approx(2.0 / 252));
  CHECK(compare::disjoint_by_chance(1, 1) == Approx(1.0));
  const auto comparison = compare::compare(result_of({1.00, 1.01, 0.99}, steady_probes),
                                           result_of({1.10, 1.12, 1.09}, steady_probes));
  CHECK(comparison.timed == 1);
  CHECK(comparison.disjoint == 1);
  CHECK(comparison.disjoint_by_chance == Approx(0.1));
}

TEST_CASE("the calibrated median of unchanged code is unchanged", "[compare]") {
  const Json fixture = result::read_result(test::source_folder() + "/tests/reports/fixture.json");
  const auto comparison = compare::compare(fixture, fixture);
  CHECK(comparison.disjoint == 0);
  CHECK(comparison.timed == 111);
  CHECK(std::none_of(comparison.pairs.begin(), comparison.pairs.end(), [](const auto& pair) {
    return pair.verdict == Verdict::slow || pair.verdict == Verdict::fast;
  }));
}
