// The growth of a panel's cells as a table.
#pragma once

#include "reports/tables/grid.hpp"

namespace attnbench::result {

/// Fitted exponents of time and workspace, and beside them what is claimed, where the cells are of
/// the task and pass that claims are of: "1.00: held", "missed" or "cannot tell", with the reasons
/// in the note. A row for each series with a fit or a claim; without rows where the axis is too
/// short for any fit.
Grid growth_grid(const Panel& panel);

}  // namespace attnbench::result
