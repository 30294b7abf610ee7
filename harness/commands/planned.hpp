// Expanded suites with the forecast of each cell, and their totals, which `plan` and the index of
// figures show.
#pragma once

#include <string>
#include <vector>

#include "harness/run/plan/pace.hpp"
#include "harness/run/plan/planning.hpp"
#include "harness/suite/suite.hpp"

namespace attnbench::commands {

struct Totals {
  std::size_t cells = 0;
  std::size_t unsupported = 0;
  double model_flops = 0;  ///< of one call of each cell
  double peak_bytes = 0;   ///< of the largest cell
  double seconds = 0;      ///< estimated, of all rounds

  void add(const Totals& other);
};

struct PlannedSuite {
  suite::Expanded suite;
  std::vector<run::Forecast> forecasts;  ///< in the cells' order
  run::Pace pace;

  Totals of_cell(std::size_t index) const;
  Totals of_all() const;
};

/// Asks the worker, or the cache, for the forecasts. Throws as suite::expand and run::forecast do.
PlannedSuite planned_suite(const suite::Document& document, const suite::Catalogue& catalogue,
                           const suite::Choices& choices, const std::vector<std::string>& plugins,
                           const run::Pace& pace);

}  // namespace attnbench::commands
