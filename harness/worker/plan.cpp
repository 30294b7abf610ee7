#include "harness/worker/plan.hpp"

#include <cmath>
#include <initializer_list>
#include <map>
#include <utility>

#include "attention/torch/cuda.hpp"
#include "core/schema/result_check.hpp"
#include "harness/worker/child.hpp"

namespace attnbench::worker {
namespace {

Numbers finite(std::initializer_list<std::pair<const char*, double>> numbers) {
  Numbers out;
  for (const auto& [name, number] : numbers) {
    if (std::isfinite(number)) out[name] = number;
  }
  return out;
}

attnbench::Forecast forecast_of(const Loaded& loaded, const attnbench::Cell& cell) {
  const tasks::Task& task = loaded.tasks.find(cell.task);
  const tasks::TaskForecast made = task.forecast(loaded.registry, task_cell(cell, loaded.tasks));
  attnbench::Forecast forecast;
  forecast.id = cell.id;
  forecast.supported = made.support.yes;
  if (!made.support.yes) forecast.reason = made.support.reason;
  forecast.implementation = made.implementation;
  forecast.implementation_reason = made.choice_reason;
  forecast.cost = numbers_of(made.cost);
  forecast.growth = Exponents(numbers_of(made.growth));
  if (std::isfinite(made.peak_bytes)) forecast.peak_bytes = made.peak_bytes;
  forecast.options = made.options.values();
  forecast.problem = made.problem;
  forecast.once = made.once;
  if (made.calls > 1) {
    forecast.calls = made.calls;
    forecast.calls_cost = numbers_of(made.calls_cost);
  }
  return forecast;
}

attnbench::Forecast failed_forecast(const attnbench::Cell& cell, const Outcome& outcome) {
  attnbench::Forecast forecast;
  forecast.id = cell.id;
  forecast.supported = false;
  forecast.reason = outcome.reason;
  if (outcome.status != result::Status::unsupported) forecast.status = outcome.status;
  forecast.detail = outcome.detail;
  forecast.refused = outcome.refused;
  return forecast;
}

std::string planning_reason(const Loaded& loaded, const attnbench::Cell& cell,
                            const std::string& reason) {
  return "while planning: " + at_place(loaded, cell.mechanism, reason) +
         blame(loaded, cell.mechanism, cell.implementation, cell.task);
}

/// What a mechanism or task of a plugin throws here costs its cell; a cell that makes no sense
/// refuses the whole suite.
Json forecast_or_failure(const Loaded& loaded, const attnbench::Cell& cell) {
  const auto python = loaded.python.find(cell.mechanism);
  if (python != loaded.python.end() && python->second.outcome.status != result::Status::ok) {
    return failed_forecast(cell, python->second.outcome);
  }
  Outcome outcome;
  try {
    Json forecast = forecast_of(loaded, cell);
    const std::string fault = schema::answer_fault("forecast", forecast);
    if (fault.empty()) return forecast;
    outcome = {result::Status::error, "its forecast is not of the form of one: " + fault, ""};
  } catch (...) {
    outcome = outcome_of(std::current_exception());
  }
  const bool failed = outcome.status != result::Status::unsupported &&
                      outcome.status != result::Status::skipped && !outcome.refused;
  if (failed) outcome.reason = planning_reason(loaded, cell, outcome.reason);
  return failed_forecast(cell, outcome);
}

}  // namespace

tasks::ResolvedCell task_cell(const attnbench::Cell& cell, const tasks::TaskTable& tasks) {
  tasks::ResolvedCell out;
  out.id = cell.id;
  out.mechanism = cell.mechanism;
  out.implementation = cell.implementation;
  out.device = torch_device(cell.device);
  out.said = cell.options;
  out.settings = Options::resolve(tasks.find(cell.task).settings(), cell.settings);
  return out;
}

Numbers numbers_of(const Cost& cost) {
  return finite({{"model_flops", cost.model_flops},
                 {"executed_flops", cost.executed_flops},
                 {"minimal_bytes", cost.minimal_bytes},
                 {"exponentials", cost.exponentials},
                 {"workspace_bytes", cost.workspace_bytes},
                 {"saved_bytes", cost.saved_bytes},
                 {"state_bytes", cost.state_bytes}});
}

Numbers numbers_of(const Growth& growth) {
  Numbers exponents = finite({{"time_in_length", growth.time_in_length},
                              {"workspace_in_length", growth.workspace_in_length},
                              {"time_in_latents", growth.time_in_latents},
                              {"workspace_in_latents", growth.workspace_in_latents},
                              {"time_in_head_dim", growth.time_in_head_dim}});
  if (growth.from_length > 0) exponents["from_length"] = static_cast<double>(growth.from_length);
  if (growth.workspace_in_head_dim) {
    exponents["workspace_in_head_dim"] = *growth.workspace_in_head_dim;
  }
  return exponents;
}

std::vector<attnbench::Forecast> plan(const Loaded& loaded,
                                      const std::vector<attnbench::Cell>& cells,
                                      double limit_seconds) {
  std::map<std::string, std::vector<std::size_t>> groups;  // by what Python loads for them
  for (std::size_t i = 0; i < cells.size(); ++i) {
    groups[loaded.python_home(cells[i].mechanism)].push_back(i);
  }
  std::vector<attnbench::Forecast> planned(cells.size());
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
            if (next < group.size()) planned[group[next++]] = message.get<attnbench::Forecast>();
          });
      if (end.status == result::Status::ok || next >= group.size()) continue;
      const attnbench::Cell& cell = cells[group[next]];
      planned[group[next++]] = failed_forecast(
          cell, {end.status, planning_reason(loaded, cell, end.reason), end.detail});
    }
  }
  return planned;
}

}  // namespace attnbench::worker
