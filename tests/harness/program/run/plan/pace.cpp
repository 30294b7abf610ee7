#include "harness/program/run/plan/pace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/claims_json.hpp"
#include "core/process/fingerprint.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using run::Pace;
using Json = nlohmann::json;

namespace {

struct Kept {
  std::string name;
  Json run;
};

/// What records.py kept of runs, as folder/records has it.
std::vector<Kept> kept_runs() {
  const std::filesystem::path folder =
      test::source_folder() + "/tests/harness/program/run/plan/records";
  std::vector<Kept> runs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    runs.push_back({entry.path().stem().string(), Json::parse(test::read_file(entry.path()))});
  }
  std::sort(runs.begin(), runs.end(), [](const Kept& a, const Kept& b) { return a.name < b.name; });
  return runs;
}

Cell cell_of(const Json& kept) {
  Cell cell;
  cell.task = kept["task"];
  cell.mechanism = kept["mechanism"];
  cell.device = kept["device"];
  return cell;
}

Forecast forecast_of(const Json& kept) {
  Forecast forecast;
  forecast.implementation = kept["implementation"];
  forecast.once = kept["once"];
  forecast.cost = kept["cost"].get<Cost>();
  if (kept.contains("calls")) {
    forecast.calls = kept["calls"].get<std::int64_t>();
    forecast.calls_cost = kept["calls_cost"].get<Cost>();
  }
  return forecast;
}

void learn(Pace& pace, const Json& cell, const Json& run) {
  // Some runs kept the time of all cells together alone.
  if (!cell.contains("seconds")) return;
  pace.learn(cell_of(cell), forecast_of(cell), run["measure"], cell["rounds"], cell["seconds"]);
}

double predicted(const Pace& pace, const Json& run) {
  double seconds = 0;
  for (const Json& cell : run["cells"]) {
    Json measure = run["measure"];
    measure["rounds"] = cell["rounds"];
    seconds += pace.cell_seconds(cell_of(cell), forecast_of(cell), measure);
  }
  return seconds;
}

/// The greater over the less.
double factor(double a, double b) { return std::max(a / b, b / a); }

const Json usual_rule = {{"rounds", 5}, {"max_seconds", 1.0}, {"min_samples", 10}};

Cell some_cell(const std::string& mechanism) {
  Cell cell;
  cell.task = "kernel";
  cell.mechanism = mechanism;
  return cell;
}

Forecast some_work(double flops) {
  Forecast forecast;
  forecast.implementation = "scan";
  forecast.cost = Json{{"model_flops", flops}}.get<Cost>();
  return forecast;
}

}  // namespace

TEST_CASE("every kept run is foretold within a factor of 3 by the others", "[planning]") {
  const std::vector<Kept> runs = kept_runs();
  REQUIRE(runs.size() >= 4);
  for (const Kept& one : runs) {
    Pace pace;
    for (const Kept& other : runs) {
      if (other.name == one.name) continue;
      pace.learn_rates(other.run["ceilings"].get<Values>());
      for (const Json& cell : other.run["cells"]) learn(pace, cell, other.run);
    }
    // Only one of the runs trains: its first training tells of the others.
    const Json& first = one.run["cells"][0];
    if (first["once"].get<bool>()) learn(pace, first, one.run);
    const double took = one.run["wall_seconds"];
    INFO(one.name << ": " << predicted(pace, one.run) << " s foretold, " << took << " s taken");
    CHECK(pace.has_own_rates());
    CHECK(factor(predicted(pace, one.run), took) < 3);
  }
}

TEST_CASE("experience of the same mechanism counts before that of others", "[planning]") {
  Pace pace;
  const double naive = pace.cell_seconds(some_cell("latte"), some_work(1e9), usual_rule);
  CHECK(naive > 0);
  CHECK_FALSE(pace.has_experience());
  pace.learn(some_cell("latte"), some_work(1e9), usual_rule, 5, 4 * naive);
  pace.learn(some_cell("linear"), some_work(1e9), usual_rule, 5, 2 * naive);
  CHECK(pace.cell_seconds(some_cell("latte"), some_work(1e9), usual_rule) == Approx(4 * naive));
  CHECK(pace.cell_seconds(some_cell("linear"), some_work(1e9), usual_rule) == Approx(2 * naive));
  CHECK(pace.cell_seconds(some_cell("luna"), some_work(1e9), usual_rule) == Approx(3 * naive));
  Cell elsewhere = some_cell("latte");
  elsewhere.device = "cuda";
  CHECK(pace.cell_seconds(elsewhere, some_work(1e9), usual_rule) == Approx(naive));
}

TEST_CASE("a generation takes the time of all its steps", "[planning]") {
  const Pace pace;
  const Json once = {{"rounds", 1}, {"max_seconds", 1.0}, {"min_samples", 10}};
  Forecast step = some_work(0);
  step.cost = Json{{"minimal_bytes", 1e4}}.get<Cost>();
  const double alone = pace.cell_seconds(some_cell("latte"), step, once);
  CHECK(alone < 1);
  step.calls = 10'000;
  step.calls_cost = Json{{"minimal_bytes", 1e11}}.get<Cost>();
  const double one_generation = 1e11 / pace.machine().bytes_per_second;
  const double all = pace.cell_seconds(some_cell("latte"), step, once);
  CHECK(all > one_generation);
  // Warm-up, the first round's calls and one sample at least, of which each is a generation.
  CHECK(all < 10 * one_generation);
  // Calls that cost nothing still have to be started.
  step.calls_cost = Json{{"minimal_bytes", 0.0}}.get<Cost>();
  CHECK(pace.cell_seconds(some_cell("latte"), step, once) > alone + 10'000 * 1e-5);
}

TEST_CASE("a decoding takes the time of reading its context, too", "[planning]") {
  const Pace pace;
  const Json once = {{"rounds", 2}, {"max_seconds", 1.0}, {"min_samples", 10}};
  Forecast step = some_work(1e6);
  const double alone = pace.cell_seconds(some_cell("latte"), step, once);
  const double prefill = 10;
  step.prefill_cost = Json{{"model_flops", prefill * pace.machine().flops_per_second}}.get<Cost>();
  // Two rounds of the state, of warm-up and of one sample at least; the first round's calls.
  CHECK(pace.cell_seconds(some_cell("latte"), step, once) > alone + 2 * 3 * prefill);
  CHECK(pace.cell_seconds(some_cell("latte"), step, once) < alone + 20 * prefill);
}

TEST_CASE("a call after a past takes the time of reading it in each round", "[planning]") {
  const Pace pace;
  const Json twice = {{"rounds", 2}, {"max_seconds", 1.0}, {"min_samples", 10}};
  Forecast chunk = some_work(1e6);
  const double alone = pace.cell_seconds(some_cell("latte"), chunk, twice);
  const double reading = 10;
  chunk.unclocked_cost =
      Json{{"model_flops", reading * pace.machine().flops_per_second}}.get<Cost>();
  CHECK(pace.cell_seconds(some_cell("latte"), chunk, twice) == Approx(alone + 3 * reading));
}

TEST_CASE("experience of single steps says nothing of generations", "[planning]") {
  Pace pace;
  Forecast several = some_work(1e9);
  several.calls = 16;
  several.calls_cost = Json{{"model_flops", 16e9}}.get<Cost>();
  const double naive = pace.cell_seconds(some_cell("latte"), several, usual_rule);
  pace.learn(some_cell("latte"), some_work(1e9), usual_rule, 5, 1e4);
  CHECK(pace.cell_seconds(some_cell("latte"), several, usual_rule) == Approx(naive));
  pace.learn(some_cell("latte"), several, usual_rule, 5, 2 * naive);
  CHECK(pace.cell_seconds(some_cell("latte"), several, usual_rule) == Approx(2 * naive));
}

TEST_CASE("experience of generations without their contexts says nothing of decodings",
          "[planning]") {
  Pace pace;
  Forecast step = some_work(1e9);
  step.calls = 16;
  step.calls_cost = Json{{"model_flops", 16e9}}.get<Cost>();
  pace.learn(some_cell("latte"), step, usual_rule, 5, 1e4);
  step.prefill_cost = Json{{"model_flops", 1e9}}.get<Cost>();
  CHECK(pace.cell_seconds(some_cell("latte"), step, usual_rule) ==
        Approx(Pace().cell_seconds(some_cell("latte"), step, usual_rule)));
}

TEST_CASE("older experience counts for less", "[planning]") {
  Pace pace;
  const double naive = pace.cell_seconds(some_cell("latte"), some_work(1e9), usual_rule);
  pace.learn(some_cell("latte"), some_work(1e9), usual_rule, 5, 4 * naive);
  pace.age();
  pace.learn(some_cell("latte"), some_work(1e9), usual_rule, 5, naive);
  CHECK(pace.cell_seconds(some_cell("latte"), some_work(1e9), usual_rule) == Approx(2 * naive));
}

TEST_CASE("what makes no sense is no experience", "[planning]") {
  Pace pace;
  for (const double seconds : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    pace.learn(some_cell("latte"), some_work(1e9), usual_rule, 5, seconds);
  }
  pace.learn_rates({{"gemm_float32_flops_per_second", 0.0}});
  CHECK_FALSE(pace.has_experience());
  CHECK_FALSE(pace.has_own_rates());
}

TEST_CASE("a pace is kept beside the other caches, and a damaged one is a new one", "[planning]") {
  const test::TemporaryFolder folder;
  Pace pace;
  pace.learn_rates(
      {{"gemm_float32_flops_per_second", 2e11}, {"bandwidth_dram_bytes_per_second", 3e10}});
  pace.learn(some_cell("latte"), some_work(1e9), usual_rule, 5, 7);
  run::remember_pace(folder / "pace.json", pace);
  const Pace again = run::remembered_pace(folder / "pace.json");
  CHECK(again.has_own_rates());
  CHECK(again.machine().flops_per_second == 2e11);
  CHECK(again.cell_seconds(some_cell("latte"), some_work(1e9), usual_rule) ==
        pace.cell_seconds(some_cell("latte"), some_work(1e9), usual_rule));
  for (const char* damaged : {"", "{", "[]", "{\"spent\": 3}"}) {
    test::write_file(folder / "pace.json", damaged);
    CHECK_FALSE(run::remembered_pace(folder / "pace.json").has_experience());
  }
  for (const Json& other : {Json::array(), Json{{"spent", 3}}}) {
    process::remember(folder / "pace.json", other);
    CHECK_FALSE(run::remembered_pace(folder / "pace.json").has_experience());
  }
}
