// The growth of a panel's cells as a table.
#pragma once

#include "harness/result/grid.hpp"

namespace attnbench::result {

/// Fitted exponents of time and workspace beside the claimed ones, a row for each series that
/// claims any; without rows where the axis is too short for any fit.
Grid growth_grid(const Panel& panel);

}  // namespace attnbench::result
