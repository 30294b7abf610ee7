#include "harness/program/compare/compare.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using compare::SpeedVerdict;
using result::Result;

namespace {

/// A result of one cell with the rounds' medians and probes.
Result timed_result(const std::vector<double>& medians, const std::vector<double>& probes = {}) {
  Result made = test::result_of({test::CellBuilder("latte").length(1024).rounds(
      medians, probes.empty() ? std::vector<double>(medians.size(), 0.01) : probes)});
  made.run.threads = 2;
  made.run.seed = 1;
  made.machine.host = "h";
  made.machine.cpu_model = "c";
  made.provenance.commit = "1";
  return made;
}

const Result steady = timed_result({1.00, 1.01, 0.99});

compare::Pair only_pair(const Result& base, const Result& changed) {
  const auto comparison = compare::compare(base, changed);
  REQUIRE(comparison.pairs.size() == 1);
  return comparison.pairs[0];
}
SpeedVerdict verdict_of(const Result& base, const Result& changed) {
  return only_pair(base, changed).verdict;
}

}  // namespace

TEST_CASE("intervals apart by more than the margin are SLOW or FAST", "[compare]") {
  const Result slower = timed_result({1.10, 1.12, 1.09});
  CHECK(verdict_of(slower, steady) == SpeedVerdict::fast);
  const auto pair = only_pair(steady, slower);
  CHECK(pair.verdict == SpeedVerdict::slow);
  CHECK(pair.ratio == Approx(1.10));
  // Three rounds: wider than what their ranges leave.
  CHECK(pair.ratio_low < 1.09 / 1.01);
  CHECK(pair.ratio_low > 1.03);
  CHECK(pair.ratio_high > 1.12 / 0.99);
  CHECK(pair.calibrated_ratio == Approx(1.10));
  CHECK(pair.disjoint);
  CHECK(pair.what == "forward");
  CHECK(pair.name == "kernel latte length=1024");
  const auto comparison = compare::compare(steady, slower);
  CHECK(comparison.timed == 1);
  CHECK(comparison.disjoint == 1);
  CHECK(comparison.disjoint_by_chance == Approx(0.1));
  CHECK(compare::disjoint_by_chance(5, 5) == Approx(2.0 / 252));
  CHECK(compare::disjoint_by_chance(1, 1) == Approx(1.0));
}

TEST_CASE("narrow intervals around 1 are SAME; wide ones, and within the margin, UNCLEAR",
          "[compare]") {
  const Result exact = timed_result({1.000, 1.001, 0.999});
  CHECK(verdict_of(exact, timed_result({1.000, 1.001, 1.002})) == SpeedVerdict::same);
  CHECK(verdict_of(timed_result({1.00, 1.10, 0.90}), timed_result({1.0, 1.1, 0.95})) ==
        SpeedVerdict::unclear);
  const auto within =
      only_pair(timed_result({1.000, 1.001, 1.002}), timed_result({1.027, 1.028, 1.029}));
  CHECK(within.verdict == SpeedVerdict::unclear);
  CHECK(within.disjoint);
  CHECK_THAT(within.reason, Catch::Contains("margin"));
  // A machine that ran slower as a whole is no SLOW.
  const auto crawling = only_pair(steady, timed_result({1.20, 1.21, 1.19}, {0.012, 0.012, 0.012}));
  CHECK(crawling.verdict == SpeedVerdict::unclear);
  CHECK(crawling.calibrated_ratio == Approx(1.0));
  CHECK_THAT(crawling.reason, Catch::Contains("calibrated"));
  CHECK(verdict_of(steady, timed_result({2.0, 2.0})) == SpeedVerdict::unclear);  // too few rounds
}

TEST_CASE("three rounds that agree by chance are judged by the scatter of all cells", "[compare]") {
  // One cell's rounds lie within 1 % while those of the others scatter by 20 %, as does each run.
  const auto beside_others = [](const std::vector<double>& rounds) {
    std::vector<result::CellRecord> cells{test::CellBuilder("latte").length(1024).rounds(rounds)};
    for (const int length : {2048, 4096, 8192}) {
      cells.push_back(test::CellBuilder("latte").length(length).rounds({1.0, 1.2, 0.8}));
    }
    Result made = steady;
    made.cells = test::result_of(cells).cells;
    return made;
  };
  const auto verdict_beside = [&](const std::vector<double>& base, const std::vector<double>& now) {
    return compare::compare(beside_others(base), beside_others(now)).pairs.at(0).verdict;
  };
  CHECK(verdict_beside({1.00, 1.01, 0.99}, {1.10, 1.12, 1.09}) == SpeedVerdict::unclear);
  CHECK(verdict_beside({1.00, 1.01, 0.99}, {1.90, 1.91, 1.89}) == SpeedVerdict::slow);
  // Six and more have order statistics of their own.
  CHECK(verdict_beside({1.00, 1.01, 0.99, 1.00, 1.01, 0.99}, {1.1, 1.11, 1.09, 1.1, 1.11, 1.09}) ==
        SpeedVerdict::slow);
}

TEST_CASE("other machines and devices allow no verdict", "[compare]") {
  Result elsewhere = timed_result({2.0, 2.0, 2.0});
  CHECK(verdict_of(steady, elsewhere) == SpeedVerdict::slow);
  SECTION("another host") { elsewhere.machine.host = "other"; }
  SECTION("other threads") { elsewhere.run.threads = 4; }
  SECTION("a machine not told") { elsewhere.machine.cpu_model.clear(); }
  SECTION("another card under the same word") {
    Result here = steady;
    here.machine.devices["cuda"].name = "one";
    elsewhere.machine.devices["cuda:1"].name = "other";
    CHECK(compare::one_machine(here, elsewhere));
    CHECK(compare::one_machine(here, steady));
    elsewhere.machine.devices["cuda"].name = "other";
    CHECK_FALSE(compare::one_machine(here, elsewhere));
    return;
  }
  CHECK(verdict_of(steady, elsewhere) == SpeedVerdict::unclear);
  CHECK_FALSE(compare::one_machine(steady, elsewhere));
}

TEST_CASE("cells of one side only are NEW or GONE, one that lost its time says why", "[compare]") {
  Result other = steady;
  other.cells[0].id = "b";
  const auto comparison = compare::compare(steady, other);
  REQUIRE(comparison.pairs.size() == 2);
  CHECK(comparison.pairs[0].verdict == SpeedVerdict::gone);
  CHECK(comparison.pairs[1].verdict == SpeedVerdict::added);
  CHECK(comparison.timed == 0);

  Result broken = steady;
  broken.cells[0].timing.clear();
  broken.cells[0].primary.clear();
  broken.cells[0].status = Status::timeout;
  CHECK(verdict_of(steady, broken) == SpeedVerdict::unclear);
  CHECK(only_pair(steady, broken).reason == "ok, then timeout");
  CHECK(verdict_of(broken, broken) == SpeedVerdict::same);
}

TEST_CASE("disturbed rounds of results measured apart enter no verdict", "[compare]") {
  const auto disturbed = [](Result result, std::size_t count) {
    auto& rounds = result.cells[0].timing["forward"].rounds;
    for (std::size_t i = 0; i < count; ++i) rounds[i].disturbed = true;
    return result;
  };
  const Result slices = timed_result({8.0, 8.01, 7.99, 8.0, 8.0});
  CHECK(verdict_of(slices, slices) == SpeedVerdict::same);
  const auto few = only_pair(disturbed(slices, 3), disturbed(slices, 4));
  CHECK(few.verdict == SpeedVerdict::unclear);
  CHECK(few.reason == "7 of 10 rounds were preempted: repeat on a quiet machine");
  const auto none = only_pair(disturbed(slices, 5), slices);
  CHECK(none.verdict == SpeedVerdict::unclear);
  CHECK_FALSE(none.base);
  // Three of five are enough, and they alone decide.
  const Result mixed = disturbed(timed_result({50, 60, 2.2, 2.21, 2.19}), 2);
  const Result base = timed_result({2.0, 2.01, 1.99, 2.0, 2.0});
  const auto slower = only_pair(base, mixed);
  CHECK(slower.verdict == SpeedVerdict::slow);
  CHECK(slower.ratio == Approx(1.1));
  CHECK(slower.left_out == 2);
  CHECK_THAT(compare::to_text(compare::compare(base, mixed), 160, false),
             Catch::Contains("without 2 of 10 rounds, disturbed"));
}

TEST_CASE("a cell that is disturbed in either result is UNCLEAR", "[compare]") {
  Result changed = timed_result({2.0, 2.0, 2.0});
  changed.cells[0].status = Status::disturbed;
  for (const auto& pair : {only_pair(steady, changed), only_pair(changed, steady)}) {
    CHECK(pair.verdict == SpeedVerdict::unclear);
    CHECK_THAT(pair.reason, Catch::Contains("disturbed") && Catch::Contains("quiet machine"));
  }
  CHECK(verdict_of(changed, changed) == SpeedVerdict::unclear);
  changed.cells[0].timing.clear();
  changed.cells[0].primary.clear();
  CHECK(verdict_of(changed, changed) == SpeedVerdict::unclear);
}

TEST_CASE("differences of provenance are shown", "[compare]") {
  Result other = steady;
  other.run.seed = 2;
  other.provenance.binary = "ff";
  CHECK(compare::differences_of(steady, steady).empty());
  CHECK(compare::differences_of(steady, other) ==
        std::vector<std::string>{"seed: 1, then 2", "binary: not said, then ff"});
}
