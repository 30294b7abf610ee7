#include "harness/worker/plan.hpp"

#include <cmath>
#include <map>
#include <utility>

#include "attention/torch/cuda.hpp"
#include "core/result/result_check.hpp"
#include "harness/worker/child.hpp"

namespace attnbench::worker {
namespace {

Forecast forecast_of(const Cell& cell, const tasks::TaskForecast& made) {
  Forecast forecast;
  forecast.id = cell.id;
  forecast.supported = made.support.yes;
  if (!made.support.yes) forecast.reason = made.support.reason;
  forecast.implementation = made.implementation;
  forecast.implementation_reason = made.choice_reason;
  forecast.cost = made.cost;
  forecast.growth = made.growth;
  if (std::isfinite(made.peak_bytes)) forecast.peak_bytes = made.peak_bytes;
  forecast.options = made.options.values();
  forecast.problem = made.problem;
  forecast.once = made.once;
  forecast.prefill_cost = made.prefill_cost;
  forecast.unclocked_cost = made.unclocked_cost;
  if (made.calls > 1) {
    forecast.calls = made.calls;
    forecast.calls_cost = made.calls_cost;
  }
  return forecast;
}

Forecast failed_forecast(const Cell& cell, const Outcome& outcome) {
  Forecast forecast;
  forecast.id = cell.id;
  forecast.supported = false;
  forecast.reason = outcome.reason;
  if (outcome.status != Status::unsupported) forecast.status = outcome.status;
  forecast.detail = outcome.detail;
  forecast.refused = outcome.refused;
  return forecast;
}

/// The cell is skipped; what it would cost is there for those who ask before they prepare its data.
Json forecast_of_skipped(const Loaded& loaded, const Cell& cell, const Outcome& outcome) {
  const Forecast skipped = failed_forecast(cell, outcome);
  try {
    const auto made = loaded.tasks.find(cell.task).forecast_without_data(
        loaded.registry, task_cell(cell, loaded.tasks));
    if (!made || !made->support) return skipped;
    Forecast estimated = forecast_of(cell, *made);
    estimated.supported = false;
    estimated.status = skipped.status;
    estimated.reason = skipped.reason;
    Json forecast = estimated;
    if (result::answer_fault("forecast", forecast).empty()) return forecast;
  } catch (...) {
    // What is wrong with it beside its data is said once these are there.
  }
  return skipped;
}

std::string planning_reason(const Loaded& loaded, const Cell& cell, const std::string& reason) {
  return "while planning: " + at_place(loaded, cell.mechanism, reason) +
         blame(loaded, cell.mechanism, cell.implementation, cell.task);
}

/// What a mechanism or task of a plugin throws here costs its cell; a cell that makes no sense
/// refuses the whole suite.
Json forecast_or_failure(const Loaded& loaded, const Cell& cell) {
  const auto python = loaded.python.find(cell.mechanism);
  if (python != loaded.python.end() && python->second.outcome.status != Status::ok) {
    return failed_forecast(cell, python->second.outcome);
  }
  Outcome outcome;
  try {
    const tasks::Task& task = loaded.tasks.find(cell.task);
    Json forecast =
        forecast_of(cell, task.forecast(loaded.registry, task_cell(cell, loaded.tasks)));
    const std::string fault = result::answer_fault("forecast", forecast);
    if (fault.empty()) return forecast;
    outcome = {Status::error, "its forecast is not of the form of one: " + fault, ""};
  } catch (...) {
    outcome = outcome_of(std::current_exception());
  }
  if (outcome.status == Status::skipped) return forecast_of_skipped(loaded, cell, outcome);
  const bool failed = outcome.status != Status::unsupported && !outcome.refused;
  if (failed) outcome.reason = planning_reason(loaded, cell, outcome.reason);
  return failed_forecast(cell, outcome);
}

}  // namespace

tasks::ResolvedCell task_cell(const Cell& cell, const tasks::TaskTable& tasks) {
  tasks::ResolvedCell out;
  out.id = cell.id;
  out.mechanism = cell.mechanism;
  out.implementation = cell.implementation;
  out.device = torch_device(cell.device);
  out.said = cell.options;
  out.settings = Options::resolve(tasks.find(cell.task).settings(), cell.settings);
  return out;
}

std::vector<Forecast> plan(const Loaded& loaded, const std::vector<Cell>& cells,
                           double limit_seconds) {
  std::map<std::string, std::vector<std::size_t>> groups;  // by what Python loads for them
  for (std::size_t i = 0; i < cells.size(); ++i) {
    groups[loaded.python_home(cells[i].mechanism)].push_back(i);
  }
  std::vector<Forecast> planned(cells.size());
  ChildSetup setup;
  setup.limit_seconds = limit_seconds;
  for (const auto& [home, group] : groups) {
    for (std::size_t next = 0; next < group.size();) {
      const Outcome end = run_child(
          setup,
          [&](process::Channel& channel) {
            for (std::size_t i = next; i < group.size(); ++i) {
              channel.send(forecast_or_failure(loaded, cells[group[i]]));
            }
          },
          [&](const Json& message) {
            if (next < group.size()) planned[group[next++]] = message.get<Forecast>();
          });
      if (end.status == Status::ok || next >= group.size()) continue;
      const Cell& cell = cells[group[next]];
      planned[group[next++]] = failed_forecast(
          cell, {end.status, planning_reason(loaded, cell, end.reason), end.detail});
    }
  }
  return planned;
}

}  // namespace attnbench::worker
