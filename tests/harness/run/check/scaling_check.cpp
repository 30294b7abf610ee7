#include "harness/run/check/scaling_check.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace attnbench::run;
using attnbench::result::GrowthVerdict;

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
  double most_length = 1 << 20;  ///< longer ones do not fit into memory
  int slow_calls = 0;            ///< that many cells take 3 times as long
  double slow_from = 0;          ///< of those, the ones of this length and longer
  int children = 0;
  double disturbed_at = 0;        ///< at this length other programs have the CPU
  int disturbed_calls = 1 << 30;  ///< that many times

  double state_bytes(const Json& cell) const {
    return 1000 * std::pow(cell.at("settings").at("length").get<double>(), state_exponent);
  }

  bool fitting(const Json& request) const {
    return request.at("cells").front().at("settings").at("length").get<double>() <= most_length;
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
      return {{"status", "out_of_memory"}, {"reason", "64 GiB"}};
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
    return {{"status", "ok"}, {"measured", measured}};
  }
};

std::vector<ScalingRow> grown(Machine& machine, bool has_latents = false,
                              std::vector<attnbench::measure::Rung> ladder = {}) {
  ScalingPlan plan;
  plan.memory_limit_bytes = 1e9;
  plan.ladder = std::move(ladder);
  const Ask ask = [&machine](const Json& request) { return machine(request); };
  return measure_scaling(ask, {"latte", "latte", "scan", "causal", "float32"}, has_latents, plan,
                         [](const std::string&) {});
}

}  // namespace

TEST_CASE("growth is measured from where a cell takes 5 ms", "[scaling_check]") {
  for (const double exponent : {1.0, 2.0}) {
    Machine machine;
    machine.exponent = machine.claimed = machine.memory_exponent = exponent;
    const auto rows = grown(machine);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].quantity == "time in length");
    CHECK(rows[0].fit.verdict == GrowthVerdict::agrees);
    CHECK(rows[0].points.size() == 9);
    for (const auto& point : rows[0].points) CHECK(point.value >= 0.005);
    CHECK(rows[0].points.front().value < 0.02 * std::pow(2, exponent));
    CHECK(rows[1].quantity == "workspace in length");
    CHECK(rows[1].points.size() == 3);
    CHECK(rows[1].fit.verdict == GrowthVerdict::agrees);
  }
}

TEST_CASE("a wrong claim is missed, after a second series", "[scaling_check]") {
  Machine machine;
  machine.exponent = 2;
  machine.claimed = 1;
  const auto rows = grown(machine);
  CHECK(rows[0].fit.verdict == GrowthVerdict::differs);
  CHECK(rows[0].points.size() == 18);
}

TEST_CASE("an exponent hidden by a smaller term is looked for at greater lengths",
          "[scaling_check]") {
  Machine machine;
  machine.exponent = machine.claimed = 2;
  machine.seconds_at_512 = 6e-3;
  machine.seconds_in_length = 6e-6;  // 3.1 ms at 512, where T^2 takes 6
  auto rows = grown(machine);
  CHECK(rows[0].fit.verdict == GrowthVerdict::agrees);
  CHECK(rows[0].points.front().size == 1024);
  CHECK(rows[1].points.front().size == 1024);
  SECTION("not where they do not fit") {
    machine.most_length = 2048;
    rows = grown(machine);
    CHECK(rows[0].fit.verdict == GrowthVerdict::below);
    CHECK_THAT(rows[0].fit.reason, Catch::Contains("rises with the size"));
    CHECK(rows[0].points.front().size == 512);
  }
  SECTION("nor where they fail") {
    machine.fails_from = 4096;
    rows = grown(machine);
    CHECK(rows[0].fit.verdict == GrowthVerdict::below);
    CHECK_THAT(rows[0].fit.reason, Catch::Contains("rises with the size"));
    CHECK(rows[0].points.front().size == 512);
  }
  SECTION("nor where it is simply smaller") {
    machine.exponent = 1;
    rows = grown(machine);
    CHECK(rows[0].fit.verdict == GrowthVerdict::differs);
    CHECK(rows[0].points.size() == 18);
  }
}

TEST_CASE("a neighbour that came and went does not make a claim wrong", "[scaling_check]") {
  Machine machine;
  machine.seconds_at_512 = 6e-3;
  machine.slow_calls = 3;
  const auto rows = grown(machine);
  CHECK(rows[0].fit.verdict == GrowthVerdict::agrees);
}

TEST_CASE("nor does one that stayed for most children of the greatest size", "[scaling_check]") {
  Machine machine;
  machine.seconds_at_512 = 6e-3;
  machine.slow_from = 2048;
  machine.slow_calls = 4;  // all three of the first series, and one of the second
  CHECK(grown(machine)[0].fit.verdict == GrowthVerdict::agrees);
  machine.slow_calls = 6;
  CHECK(grown(machine)[0].fit.verdict == GrowthVerdict::differs);
}

TEST_CASE("a size whose children were all disturbed decides nothing", "[scaling_check]") {
  Machine machine;
  machine.seconds_at_512 = 6e-3;
  for (const double length : {512.0, 1024.0, 2048.0}) {
    machine.disturbed_at = length;
    const auto rows = grown(machine);
    REQUIRE_FALSE(rows.empty());
    INFO(length);
    CHECK(rows[0].fit.verdict == GrowthVerdict::undecided);
    CHECK_THAT(rows[0].fit.reason, Catch::Contains("other programs had the CPU") &&
                                       Catch::Contains(std::to_string(int(length))));
  }
  SECTION("one that was left alone once does") {
    machine.disturbed_calls = 2;
    for (const double length : {512.0, 1024.0, 2048.0}) {
      machine.disturbed_at = length;
      machine.disturbed_calls = 2;
      CHECK(grown(machine)[0].fit.verdict == GrowthVerdict::agrees);
    }
  }
  SECTION("and bytes are what they are") {
    machine.disturbed_at = 2048;
    const auto rows = grown(machine);
    REQUIRE(rows.size() == 2);
    CHECK(rows[1].fit.verdict == GrowthVerdict::agrees);
  }
}

TEST_CASE("a slope that slower memory explains refutes nothing, a steeper one does",
          "[scaling_check]") {
  Machine machine;
  machine.memory_exponent = 1;
  machine.seconds_at_512 = 6e-3;
  machine.exponent = 1.4;
  // The workspaces are 0.5, 1 and 2 MB: memory at half the rate explains an exponent of 0.5.
  const std::vector<attnbench::measure::Rung> ladder = {{512e3, 2e10}, {2048e3, 1e10}};
  const auto within = grown(machine, false, ladder)[0].fit;
  CHECK(within.verdict == GrowthVerdict::undecided);
  CHECK_THAT(within.reason, Catch::Contains("1.40") && Catch::Contains("workspace") &&
                                Catch::Contains("2.00 times slower"));
  CHECK(grown(machine)[0].fit.verdict == GrowthVerdict::differs);
  CHECK(grown(machine, false, {{512e3, 2e10}, {2048e3, 2e10}})[0].fit.verdict ==
        GrowthVerdict::differs);
  machine.exponent = 1.8;
  CHECK(grown(machine, false, ladder)[0].fit.verdict == GrowthVerdict::differs);
  machine.exponent = 0.6;
  CHECK(grown(machine, false, ladder)[0].fit.verdict == GrowthVerdict::differs);
  machine.exponent = 1;
  CHECK(grown(machine, false, ladder)[0].fit.verdict == GrowthVerdict::agrees);
}

TEST_CASE("a state that leaves a cache is as good a reason as a workspace", "[scaling_check]") {
  Machine machine;
  machine.seconds_at_512 = 6e-3;
  machine.exponent = 1.4;
  machine.state_exponent = 1;
  const std::vector<attnbench::measure::Rung> ladder = {{512e3, 2e10}, {2048e3, 1e10}};
  const auto fit = grown(machine, false, ladder)[0].fit;
  CHECK(fit.verdict == GrowthVerdict::undecided);
  CHECK_THAT(fit.reason, Catch::Contains("state grows from"));
}

TEST_CASE("latents are an axis of their own where they are claimed", "[scaling_check]") {
  Machine machine;
  machine.claimed_in_latents = 1;
  const auto rows = grown(machine, true);
  REQUIRE(rows.size() == 4);
  CHECK(rows[2].quantity == "time in latents");
  CHECK(rows[2].fit.verdict == GrowthVerdict::agrees);
  CHECK(rows[2].points.front().size == 128);
  CHECK(rows[3].quantity == "workspace in latents");
  Machine without;
  CHECK(grown(without, true).size() == 2);
}

TEST_CASE("a claim in latents is refuted by faster growth, not by slower", "[scaling_check]") {
  Machine machine;
  machine.claimed_in_latents = 1;
  machine.exponent_in_latents = 0.5;
  CHECK(grown(machine, true)[2].fit.verdict == GrowthVerdict::below);
  machine.exponent_in_latents = 1.5;
  CHECK(grown(machine, true)[2].fit.verdict == GrowthVerdict::differs);
}

TEST_CASE("a quantity that cannot be measured is undecided, with the reason", "[scaling_check]") {
  Machine failing;
  failing.fails_from = 1024;
  auto rows = grown(failing);
  REQUIRE_FALSE(rows.empty());
  CHECK(rows[0].fit.verdict == GrowthVerdict::undecided);
  CHECK_THAT(rows[0].fit.reason, Catch::Contains("out_of_memory: 64 GiB"));

  Machine large;
  large.peak_bytes = 1e12;
  rows = grown(large);
  CHECK(rows[0].fit.verdict == GrowthVerdict::undecided);
  CHECK(large.children == 0);

  Machine none;
  none.supported = false;
  CHECK(grown(none).empty());
}

TEST_CASE("a row of growth as JSON holds no null", "[scaling_check]") {
  Machine failing;
  failing.fails_from = 1024;
  Json row = grown(failing)[0];
  CHECK(row.at("verdict") == "undecided");
  CHECK_FALSE(row.contains("measured"));
  Machine machine;
  row = grown(machine)[0];
  CHECK(row.at("measured").get<double>() == Approx(1));
  CHECK(row.at("local").size() == 2);
  CHECK(row.dump().find("null") == std::string::npos);
}

TEST_CASE("head_dim is an axis along which sizes that follow it are held", "[scaling_check]") {
  Machine machine;
  machine.claimed_in_head_dim = 1;
  const auto rows = grown(machine);
  REQUIRE(rows.size() == 3);
  CHECK(rows[2].quantity == "time in head_dim");
  CHECK(rows[2].points.front().size == 256);
  CHECK(rows[2].fit.verdict == GrowthVerdict::agrees);
}

TEST_CASE("growth is measured from the length on that a claim names", "[scaling_check]") {
  Machine machine;
  machine.seconds_at_512 = 1;
  machine.claimed_from = 4096;
  const auto rows = grown(machine);
  REQUIRE(!rows.empty());
  for (const auto& point : rows.front().points) CHECK(point.size >= 4096);
  machine.claimed_from = 0;
  CHECK(grown(machine).front().points.front().size == 256);
}
