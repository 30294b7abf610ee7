#include "harness/commands/planned.hpp"

#include <algorithm>

namespace attnbench::commands {

void Totals::add(const Totals& other) {
  cells += other.cells;
  unsupported += other.unsupported;
  model_flops += other.model_flops;
  peak_bytes = std::max(peak_bytes, other.peak_bytes);
  seconds += other.seconds;
}

Totals PlannedSuite::of_cell(std::size_t index) const {
  const run::Forecast& forecast = forecasts[index];
  Totals totals;
  totals.cells = 1;
  if (!forecast.supported) {
    totals.unsupported = 1;
    return totals;
  }
  totals.model_flops = forecast.cost_of("model_flops");
  totals.peak_bytes = forecast.peak_bytes.value_or(0);
  totals.seconds = pace.cell_seconds(suite.cells[index], forecast, suite.measure);
  return totals;
}

Totals PlannedSuite::of_all() const {
  Totals all;
  for (std::size_t i = 0; i < suite.cells.size(); ++i) all.add(of_cell(i));
  return all;
}

PlannedSuite planned_suite(const suite::Document& document, const suite::Catalogue& catalogue,
                           const suite::Choices& choices, const std::vector<std::string>& plugins,
                           const run::Pace& pace) {
  PlannedSuite planned{suite::expand(document, catalogue, choices), {}, pace};
  planned.forecasts = run::forecast(planned.suite.cells, plugins);
  return planned;
}

}  // namespace attnbench::commands
