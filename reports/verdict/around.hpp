// The command that measures around a crossing: more rounds, at lengths about its interval.
#pragma once

#include <string>

#include "reports/tables/layout.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

/// A call of `attnbench run` for a crossing that was found on `panel`: the run's own command, with
/// the label and exact attention alone, six lengths from below the interval to above it, and at
/// least ten rounds. Empty where no such call measures the same: of a result that `run` did not
/// make, and where other sizes change with the length.
std::string command_around(const Panel& panel, const CrossingStatement& crossing);

}  // namespace attnbench::reports::verdict
