#include "harness/program/run/plan/pace.hpp"

#include <array>
#include <cmath>
#include <cstdio>

#include "core/errors.hpp"
#include "core/hash.hpp"
#include "core/process/fingerprint.hpp"
#include "core/text/format.hpp"

namespace attnbench::run {
namespace {

/// What is kept of older experience when a run adds its own.
constexpr double kept_share = 0.5;

/// What it takes to start the few tensor operations of a call that follows another: assumed.
constexpr double start_of_call_seconds = 2e-5;

/// Experience was gathered without the steps of cells that generate, and without the contexts that
/// they read, before these were planned: it stays apart.
std::string kind_of(const Forecast& forecast) {
  if (forecast.once) return " trained";
  if (forecast.prefill_cost) return " decoded";
  return forecast.calls ? " generated" : " timed";
}

/// The groups a cell belongs to, from the most specific to the most general.
std::array<std::string, 3> groups_of(const Cell& cell, const Forecast& forecast) {
  const std::string kind = cell.device + kind_of(forecast);
  const std::string task = kind + " " + cell.task;
  return {task + " " + cell.mechanism + " " + forecast.implementation, task, kind};
}

/// The estimate from a cell's costs, before it is corrected by how long other cells took.
double naive_seconds(const Forecast& forecast, const Json& measure,
                     const suite::AssumedMachine& machine) {
  double once = suite::estimated_call_seconds(forecast.cost, machine);
  if (forecast.once) return once;
  if (forecast.calls) {
    once = suite::estimated_call_seconds(forecast.calls_cost.value_or(Cost{}), machine) +
           static_cast<double>(*forecast.calls) * start_of_call_seconds;
  }
  double seconds = suite::estimated_cell_seconds(once, measure);
  if (forecast.unclocked_cost) {
    // Once in each round, and once more for the check of the first.
    seconds += (measure.value("rounds", 5) + 1) *
               suite::estimated_call_seconds(*forecast.unclocked_cost, machine);
  }
  if (!forecast.prefill_cost) return seconds;
  // Every round reads the context once more, to have the state that the steps begin with.
  const double prefill = suite::estimated_call_seconds(*forecast.prefill_cost, machine);
  return seconds + suite::estimated_cell_seconds(prefill, measure) -
         suite::estimated_cell_seconds(0, measure) + measure.value("rounds", 5) * prefill;
}

/// The file of a pace.
struct PaceFile {
  double flops_per_second = 0;
  double bytes_per_second = 0;
  bool own_rates = false;
  std::map<std::string, std::vector<double>> spent;  ///< estimated and measured, by group
};
ATTNBENCH_JSON_CODEC(PaceFile) { JSON_AT(flops_per_second, bytes_per_second, own_rates, spent); }

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

void Pace::learn_rates(const Values& ceilings) {
  const auto flops = number_of(ceilings, "gemm_float32_flops_per_second");
  const auto bytes = number_of(ceilings, "bandwidth_dram_bytes_per_second");
  if (!flops || !bytes || !is_positive(*flops) || !is_positive(*bytes)) return;
  machine_ = {*flops, *bytes};
  own_rates_ = true;
}

void Pace::learn(const Cell& cell, const Forecast& forecast, const Json& measure, int rounds,
                 double wall_seconds) {
  Json done = measure;
  done["rounds"] = rounds;
  const double estimated = naive_seconds(forecast, done, machine_);
  if (!is_positive(estimated) || !is_positive(wall_seconds)) return;
  for (const std::string& group : groups_of(cell, forecast)) {
    Spent& spent = spent_[group];
    spent.estimated += estimated;
    spent.measured += wall_seconds;
  }
}

double Pace::cell_seconds(const Cell& cell, const Forecast& forecast, const Json& measure) const {
  const double naive = naive_seconds(forecast, measure, machine_);
  for (const std::string& group : groups_of(cell, forecast)) {
    const auto found = spent_.find(group);
    if (found != spent_.end()) return naive * found->second.measured / found->second.estimated;
  }
  return naive;
}

void Pace::age() {
  for (auto& [group, spent] : spent_) {
    spent.estimated *= kept_share;
    spent.measured *= kept_share;
  }
}

void to_json(Json& json, const Pace& pace) {
  PaceFile file{
      pace.machine_.flops_per_second, pace.machine_.bytes_per_second, pace.own_rates_, {}};
  for (const auto& [group, spent] : pace.spent_) {
    file.spent[group] = {spent.estimated, spent.measured};
  }
  json = file;
}

void from_json(const Json& json, Pace& pace) {
  const auto file = json.get<PaceFile>();
  pace.machine_ = {file.flops_per_second, file.bytes_per_second};
  pace.own_rates_ = file.own_rates;
  for (const auto& [group, numbers] : file.spent) {
    const Spent spent{numbers.at(0), numbers.at(1)};
    if (is_positive(spent.estimated) && is_positive(spent.measured)) pace.spent_[group] = spent;
  }
}

std::string human_duration(double seconds) {
  constexpr double minute = 60, hour = 3600;
  if (seconds < 10) return text::human_seconds(seconds);
  std::array<char, 32> text{};
  if (seconds < 2 * minute) {
    std::snprintf(text.data(), text.size(), "%.0f s", seconds);
  } else if (seconds < 2 * hour) {
    std::snprintf(text.data(), text.size(), "%.0f min", seconds / minute);
  } else {
    const bool readable = seconds < 1e9 * hour;
    const char* form = seconds < 10 * hour ? "%.1f h" : readable ? "%.0f h" : "%.2e h";
    std::snprintf(text.data(), text.size(), form, seconds / hour);
  }
  return text.data();
}

std::filesystem::path pace_file(const std::string& cpu_model) {
  return process::cache_file("pace-" + hash_text(cpu_model) + ".json");
}

Pace remembered_pace(const std::filesystem::path& file) {
  try {
    if (const auto known = process::recalled(file)) return known->get<Pace>();
  } catch (const std::exception&) {
    // A damaged cache is as good as none.
  }
  return {};
}

void remember_pace(const std::filesystem::path& file, const Pace& pace) {
  process::remember(file, pace);
}

}  // namespace attnbench::run
