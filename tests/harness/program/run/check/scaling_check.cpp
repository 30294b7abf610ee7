#include "harness/program/run/check/scaling_check.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::run;
using reports::GrowthVerdict;

namespace {

/// A worker whose cells cost what a formula says.
struct Machine {
  double exponent = 1;
  double claimed = 1;
  double claimed_in_latents = 0;
  double exponent_in_latents = 1;
  double claimed_in_head_dim = 0;  ///< 0 = says nothing of it
  std::int64_t claimed_from = 0;   ///< 0 = from any length on
  double memory_exponent = 0;
  double state_exponent = 0;
  double seconds_at_512 = 2e-4;
  bool supported = true;
  double peak_bytes = 0;
  std::int64_t fails_from = 1 << 30;
  double seconds_in_length = 0;  ///< a term in T^1 beside, for each token
  double max_length = 1 << 20;   ///< longer ones do not fit into memory
  int slow_calls = 0;            ///< that many cells take 3 times as long
  double slow_from = 0;          ///< of those, the ones of this length and longer
  int children = 0;
  double disturbed_at = 0;        ///< at this length other programs have the CPU
  int disturbed_calls = 1 << 30;  ///< that many times

  double state_bytes(const Json& cell) const {
    return 1000 * std::pow(cell.at("settings").at("length").get<double>(), state_exponent);
  }

  bool fitting(const Json& request) const {
    return request.at("cells").front().at("settings").at("length").get<double>() <= max_length;
  }

  Json operator()(const Json& request) {
    if (request.at("type") == "plan") {
      Json growth = {{"time_in_length", claimed},
                     {"workspace_in_length", memory_exponent},
                     {"time_in_latents", claimed_in_latents},
                     {"workspace_in_latents", claimed_in_latents}};
      if (claimed_in_head_dim > 0) growth["time_in_head_dim"] = claimed_in_head_dim;
      if (claimed_from > 0) growth["from_length"] = claimed_from;
      return {{"cells",
               {{{"id", request.at("cells").front().at("id")},
                 {"supported", supported},
                 {"problem", attnbench::Problem{}},
                 {"implementation", "scan"},
                 {"implementation_reason", ""},
                 {"peak_bytes", fitting(request) ? peak_bytes : 1e12},
                 {"options", {{"features", 64}}},
                 {"cost", {{"state_bytes", state_bytes(request.at("cells").front())}}},
                 {"growth", growth}}}}};
    }
    ++children;
    const Json& cell = request.at("cell");
    const double length = cell.at("settings").at("length");
    const double latents = cell.at("options").value("latents_per_head", 64.0);
    if (length >= static_cast<double>(fails_from)) {
      return {{"cell", "one"}, {"round", 0}, {"status", "out_of_memory"}, {"reason", "64 GiB"}};
    }
    double seconds = seconds_at_512 * std::pow(length / 512, exponent);
    seconds += seconds_in_length * length;
    if (claimed_in_latents > 0) seconds *= std::pow(latents / 64, exponent_in_latents);
    const double head_dim = cell.at("settings").at("head_dim");
    seconds *= head_dim / 64 * cell.at("options").value("features", head_dim) / 64;
    if (length >= slow_from && slow_calls > 0) {
      --slow_calls;
      seconds *= 3;
    }
    const bool disturbed = length == disturbed_at && disturbed_calls-- > 0;
    if (disturbed) seconds = 0.2;  // the scheduler's slices
    Json measured = {{"timing", {{"forward", {{"median_seconds", seconds}}}}}};
    if (disturbed) measured["timing"]["forward"]["disturbed"] = true;
    if (request.at("round") == 0) {
      const double bytes =
          1000 * std::pow(length, memory_exponent) * (claimed_in_latents > 0 ? latents : 1.0);
      measured["memory"] = {{"workspace_bytes", bytes}};
    }
    return {{"cell", "one"}, {"round", 0}, {"status", "ok"}, {"measured", measured}};
  }
};

std::vector<ScalingRow> grown(Machine& machine, bool has_latents = false,
                              std::vector<attnbench::Rung> ladder = {}) {
  ScalingPlan plan;
  plan.memory_limit_bytes = 1e9;
  plan.ladder = std::move(ladder);
  const Ask ask = [&machine](const Json& request) { return machine(request); };
  return measure_scaling(ask, {"latte", "latte", "scan", "causal", "float32"}, has_latents, plan,
                         [](const std::string&) {});
}

/// The fit of the time in length.
reports::GrowthFit time_fit(Machine machine, std::vector<attnbench::Rung> ladder = {}) {
  const auto rows = grown(machine, false, std::move(ladder));
  REQUIRE_FALSE(rows.empty());
  CHECK(rows[0].quantity == "time in length");
  return rows[0].fit;
}

Machine slow_machine() {
  Machine machine;
  machine.seconds_at_512 = 6e-3;
  return machine;
}

}  // namespace

TEST_CASE("growth is measured from where a cell takes 5 ms", "[scaling_check]") {
  for (const double exponent : {1.0, 2.0}) {
    Machine machine;
    machine.exponent = machine.claimed = machine.memory_exponent = exponent;
    const auto rows = grown(machine);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].fit.verdict == GrowthVerdict::agrees);
    CHECK(rows[0].points.size() == 9);
    for (const auto& point : rows[0].points) CHECK(point.value >= 0.005);
    CHECK(rows[0].points.front().value < 0.02 * std::pow(2, exponent));
    CHECK(rows[1].quantity == "workspace in length");
    CHECK(rows[1].points.size() == 3);
    CHECK(rows[1].fit.verdict == GrowthVerdict::agrees);
    const Json row = rows[0];
    CHECK(row.at("measured").get<double>() == Approx(exponent));
    CHECK(row.at("local").size() == 2);
    CHECK_THAT(row.dump(), !Catch::Contains("null"));
  }
  // A wrong claim is missed, after a second series.
  Machine machine;
  machine.exponent = 2;
  const auto rows = grown(machine);
  CHECK(rows[0].fit.verdict == GrowthVerdict::differs);
  CHECK(rows[0].points.size() == 18);
  // From the length on that a claim names.
  machine = Machine();
  machine.seconds_at_512 = 1;
  CHECK(grown(machine)[0].points.front().size == 256);
  machine.claimed_from = 4096;
  const auto later = grown(machine);
  for (const auto& point : later[0].points) CHECK(point.size >= 4096);
}

TEST_CASE("an exponent hidden by a smaller term is looked for at greater lengths",
          "[scaling_check]") {
  Machine machine = slow_machine();
  machine.exponent = machine.claimed = 2;
  machine.seconds_in_length = 6e-6;  // 3.1 ms at 512, where T^2 takes 6
  SECTION("where they fit") {
    const auto rows = grown(machine);
    CHECK(rows[0].fit.verdict == GrowthVerdict::agrees);
    CHECK(rows[0].points.front().size == 1024);
    CHECK(rows[1].points.front().size == 1024);
  }
  SECTION("not where they do not fit, nor where they fail") {
    Machine failing = machine;
    failing.fails_from = 4096;
    machine.max_length = 2048;
    for (Machine* one : {&machine, &failing}) {
      const auto rows = grown(*one);
      CHECK(rows[0].fit.verdict == GrowthVerdict::below);
      CHECK_THAT(rows[0].fit.reason, Catch::Contains("rises with the size"));
      CHECK(rows[0].points.front().size == 512);
    }
  }
  SECTION("nor where it is simply smaller") {
    machine.exponent = 1;
    const auto rows = grown(machine);
    CHECK(rows[0].fit.verdict == GrowthVerdict::differs);
    CHECK(rows[0].points.size() == 18);
  }
}

TEST_CASE("a neighbour that came and went does not make a claim wrong", "[scaling_check]") {
  Machine machine = slow_machine();
  machine.slow_calls = 3;
  CHECK(time_fit(machine).verdict == GrowthVerdict::agrees);
  // Nor one that stayed for most children of the greatest size.
  machine.slow_from = 2048;
  machine.slow_calls = 4;  // all three of the first series, and one of the second
  CHECK(time_fit(machine).verdict == GrowthVerdict::agrees);
  machine.slow_calls = 6;
  CHECK(time_fit(machine).verdict == GrowthVerdict::differs);
}

TEST_CASE("a size whose children were all disturbed decides nothing", "[scaling_check]") {
  for (const int length : {512, 1024, 2048}) {
    Machine machine = slow_machine();
    machine.disturbed_at = length;
    INFO(length);
    const auto rows = grown(machine);
    REQUIRE_FALSE(rows.empty());
    CHECK(rows[0].fit.verdict == GrowthVerdict::undecided);
    CHECK_THAT(rows[0].fit.reason, Catch::Contains("other programs had the CPU") &&
                                       Catch::Contains(std::to_string(length)));
    if (length == 2048) {  // bytes are what they are
      REQUIRE(rows.size() == 2);
      CHECK(rows[1].fit.verdict == GrowthVerdict::agrees);
    }
    // One that was left alone once does.
    machine.disturbed_calls = 2;
    CHECK(time_fit(machine).verdict == GrowthVerdict::agrees);
  }
}

TEST_CASE("a slope that slower memory explains refutes nothing, a steeper one does",
          "[scaling_check]") {
  Machine machine = slow_machine();
  machine.memory_exponent = 1;
  // The workspaces are 0.5, 1 and 2 MB: memory at half the rate explains an exponent of 0.5.
  const std::vector<attnbench::Rung> ladder = {{512e3, 2e10}, {2048e3, 1e10}};
  const auto verdict = [&](double exponent, const std::vector<attnbench::Rung>& rungs) {
    machine.exponent = exponent;
    return time_fit(machine, rungs).verdict;
  };
  CHECK(verdict(1.4, ladder) == GrowthVerdict::undecided);
  CHECK_THAT(time_fit(machine, ladder).reason, Catch::Contains("1.40") &&
                                                   Catch::Contains("workspace") &&
                                                   Catch::Contains("2.00 times slower"));
  CHECK(verdict(1.4, {}) == GrowthVerdict::differs);
  CHECK(verdict(1.4, {{512e3, 2e10}, {2048e3, 2e10}}) == GrowthVerdict::differs);
  CHECK(verdict(1.8, ladder) == GrowthVerdict::differs);
  CHECK(verdict(0.6, ladder) == GrowthVerdict::differs);
  CHECK(verdict(1, ladder) == GrowthVerdict::agrees);
  // A state that leaves a cache is as good a reason as a workspace.
  machine.memory_exponent = 0;
  machine.state_exponent = 1;
  CHECK(verdict(1.4, ladder) == GrowthVerdict::undecided);
  CHECK_THAT(time_fit(machine, ladder).reason, Catch::Contains("state grows from"));
}

TEST_CASE("latents and head_dim are axes of their own where they are claimed", "[scaling_check]") {
  Machine machine;
  CHECK(grown(machine, true).size() == 2);
  machine.claimed_in_latents = 1;
  const auto rows = grown(machine, true);
  REQUIRE(rows.size() == 4);
  CHECK(rows[2].quantity == "time in latents");
  CHECK(rows[2].fit.verdict == GrowthVerdict::agrees);
  CHECK(rows[2].points.front().size == 128);
  CHECK(rows[3].quantity == "workspace in latents");
  // Refuted by faster growth, not by slower.
  machine.exponent_in_latents = 0.5;
  CHECK(grown(machine, true)[2].fit.verdict == GrowthVerdict::below);
  machine.exponent_in_latents = 1.5;
  CHECK(grown(machine, true)[2].fit.verdict == GrowthVerdict::differs);
  // Along head_dim sizes that follow it are held.
  Machine wide;
  wide.claimed_in_head_dim = 1;
  const auto along = grown(wide);
  REQUIRE(along.size() == 3);
  CHECK(along[2].quantity == "time in head_dim");
  CHECK(along[2].points.front().size == 256);
  CHECK(along[2].fit.verdict == GrowthVerdict::agrees);
}

TEST_CASE("a quantity that cannot be measured is undecided, with the reason", "[scaling_check]") {
  Machine failing;
  failing.fails_from = 1024;
  const auto rows = grown(failing);
  REQUIRE_FALSE(rows.empty());
  CHECK_THAT(rows[0].fit.reason, Catch::Contains("out_of_memory: 64 GiB"));
  const Json row = rows[0];
  CHECK(row.at("verdict") == "undecided");
  CHECK_FALSE(row.contains("measured"));

  Machine large;
  large.peak_bytes = 1e12;
  CHECK(grown(large)[0].fit.verdict == GrowthVerdict::undecided);
  CHECK(large.children == 0);
  Machine none;
  none.supported = false;
  CHECK(grown(none).empty());
}
