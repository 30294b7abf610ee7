// Failures: cells that ended without a number though they could have had one, as marks in a figure.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "reports/tables/layout.hpp"

namespace attnbench::reports {

using Json = nlohmann::json;

/// Marks at the upper edge for cells that are wrong, out of memory, timed out or crashed. An array
/// of none or one layer, with a y scale of its own.
Json failure_layers(const result::Panel& panel);

/// The series that have such marks.
std::set<std::string> failed_series(const result::Panel& panel);

/// How many marks stand above each other at most.
int failure_height(const result::Panel& panel);

}  // namespace attnbench::reports
