// The crossover task: from which length on a mechanism is faster than the fastest exact attention,
// found by search with an interval, for one scope and size of the mechanism.
#include <limits>

#include "tasks/call/cost.hpp"
#include "tasks/crossover/settings.hpp"
#include "tasks/crossover/work.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks {
namespace crossover {
namespace {

/// At the shortest coarse length that the cell supports, else the last refusal.
Forecast forecast_at_shortest(const Registry& registry, const Cell& cell, const Range& range) {
  Forecast forecast;
  for (const std::int64_t length : coarse_lengths(range.minimum, range.maximum)) {
    const call::Settings settings = call_at(cell, length);
    forecast = forecast_mix(registry, cell, settings.problem);
    call::price(forecast, registry, cell, settings);
    if (forecast.support) break;
  }
  return forecast;
}

/// Of a call of the mechanism and one of an exact form at each coarse length: what an estimate of
/// the time needs. Lengths that are not supported cost nothing; what is not counted is not a
/// number.
Cost cost_of_all(const Registry& registry, const Settings& settings) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  Cost cost{0, 0, unknown, unknown, unknown, unknown, unknown};
  for (const std::int64_t length : coarse_lengths(settings.range.minimum, settings.range.maximum)) {
    for (const Cell& cell : {settings.mechanism, settings.exact.back()}) {
      const call::Settings call = call_at(cell, length);
      Forecast forecast = forecast_mix(registry, cell, call.problem);
      call::price(forecast, registry, cell, call);
      if (!forecast.support) continue;
      cost.model_flops += forecast.cost.model_flops;
      cost.executed_flops += forecast.cost.executed_flops;
    }
  }
  return cost;
}

class CrossoverTask final : public Task {
 public:
  std::string name() const override { return "crossover"; }
  std::string title() const override {
    return "The length from which on it is faster than the fastest exact attention";
  }
  std::vector<Option> settings() const override { return declared_settings(); }
  std::vector<std::string> figures() const override { return {"crossover"}; }
  std::string axis() const override { return "size_per_head"; }

  Forecast forecast(const Registry& registry, const Cell& cell) const override {
    const Settings settings = settings_from(registry, cell);
    Forecast forecast = forecast_at_shortest(registry, cell, settings.range);
    if (!forecast.support) return forecast;
    forecast.cost = cost_of_all(registry, settings);
    return forecast;
  }

  std::unique_ptr<Work> make(const Registry& registry, const Cell& cell) const override {
    const Forecast known = forecast(registry, cell);
    if (!known.support) throw UnsupportedError(known.support.reason);
    return make_work(registry, cell);
  }
};

}  // namespace
}  // namespace crossover

std::unique_ptr<Task> make_crossover() { return std::make_unique<crossover::CrossoverTask>(); }

}  // namespace attnbench::tasks
