#include "harness/worker/plan.hpp"

#include <cmath>

#include "core/schema/result_check.hpp"
#include "harness/worker/cell.hpp"
#include "harness/worker/child.hpp"

namespace attnbench::worker {
namespace {

Json forecast_of(const Loaded& loaded, const Json& cell) {
  const tasks::Cell wanted = cell_from(cell, loaded.tasks);
  const tasks::Task& task = loaded.tasks.find(cell.at("task"));
  const tasks::Forecast forecast = task.forecast(loaded.registry, wanted);
  Json out = {{"supported", forecast.support.yes},
              {"implementation", forecast.implementation},
              {"implementation_reason", forecast.choice_reason},
              {"cost", to_json(forecast.cost)},
              {"growth", to_json(forecast.growth)},
              {"options", to_json(forecast.options)},
              {"problem", to_json(forecast.problem)}};
  if (forecast.once) out["once"] = true;
  if (!forecast.support.yes) out["reason"] = forecast.support.reason;
  if (std::isfinite(forecast.peak_bytes)) out["peak_bytes"] = forecast.peak_bytes;
  return out;
}

Json refusal(const Outcome& outcome) {
  Json out = {{"supported", false}, {"reason", outcome.reason}};
  if (outcome.status != result::Status::unsupported) {
    out["status"] = result::to_string(outcome.status);
  }
  if (!outcome.detail.empty()) out["detail"] = outcome.detail;
  if (outcome.refused) out["refused"] = true;
  return out;
}

/// What a mechanism or task of a plugin throws here costs its cell; a suite that asks for what
/// makes no sense is refused as a whole.
Json forecast_or_refusal(const Loaded& loaded, const Json& cell) {
  Outcome outcome;
  try {
    Json forecast = forecast_of(loaded, cell);
    const std::string fault = result::answer_fault("forecast", forecast);
    if (fault.empty()) return forecast;
    outcome = {result::Status::error, "its forecast is not of the form of one: " + fault, ""};
  } catch (...) {
    outcome = outcome_of(std::current_exception());
  }
  const bool failed = outcome.status != result::Status::unsupported && !outcome.refused;
  if (failed) outcome.reason = "while planning: " + outcome.reason + blame(loaded, cell);
  return refusal(outcome);
}

}  // namespace

Json plan(const Loaded& loaded, const Json& cells, double limit_seconds) {
  Json planned = Json::array();
  ChildSetup setup;
  setup.limit_seconds = limit_seconds;
  while (planned.size() < cells.size()) {
    const Outcome end = run_child(
        setup,
        [&](run::Channel& channel) {
          for (std::size_t i = planned.size(); i < cells.size(); ++i) {
            channel.send(
                {{"type", "forecast"}, {"forecast", forecast_or_refusal(loaded, cells[i])}});
          }
        },
        [&](const Json& message) { planned.push_back(message.at("forecast")); });
    if (end.status != result::Status::ok && planned.size() < cells.size()) {
      const Json& cell = cells[planned.size()];
      planned.push_back(
          refusal({end.status, "while planning: " + end.reason + blame(loaded, cell), end.detail}));
    }
  }
  for (std::size_t i = 0; i < cells.size(); ++i) planned[i]["id"] = cells[i].value("id", "");
  return {{"type", "plan"}, {"cells", std::move(planned)}};
}

}  // namespace attnbench::worker
