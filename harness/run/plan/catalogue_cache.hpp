// What the worker knows, remembered: the catalogue and forecasts, so that `list`, `validate` and
// `plan` answer without loading LibTorch. Keyed by the content of the worker, its libraries and the
// plugins.
#pragma once

#include <string>
#include <vector>

#include "harness/suite/catalogue.hpp"

namespace attnbench::run {

/// From the cache, or from a worker started for it. Throws EnvironmentFailure if there is none.
suite::Catalogue load_catalogue(const std::vector<std::string>& plugins);

/// Whether each of a list of forecasts was made: one with a status failed, and may not the next
/// time. Only whole lists are remembered.
bool is_whole(const suite::Json& forecasts);

/// The worker's forecast of each cell, in order; cached like the catalogue.
std::vector<suite::Json> forecast(const std::vector<suite::Json>& cells,
                                  const std::vector<std::string>& plugins);

}  // namespace attnbench::run
