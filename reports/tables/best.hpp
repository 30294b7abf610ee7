// What is best in each column of a grid: the fastest or smallest of each place on the axis.
#pragma once

#include <functional>
#include <optional>

#include "core/statistics.hpp"
#include "reports/tables/grid.hpp"

namespace attnbench::result {

/// A number of a cell that may be ranked; nothing of a cell that has none, or may not be.
using Ranked = std::function<std::optional<measure::Estimate>(const CellRecord& cell)>;

/// The primary time of a cell that is ok and was timed in several processes.
std::optional<measure::Estimate> ranked_time(const CellRecord& cell);

/// A count of bytes, such as memory.workspace_bytes, of a cell that is ok or disturbed.
Ranked exact_bytes(Values CellRecord::*part, const char* key);

/// Fills `grid.best` of a grid that has the panel's series down and its axis across. Columns in
/// which nothing is better than anything else get no mark, nor do those with a single number, nor
/// those in which something missing might be better, which the grid's note says.
void mark_least(Grid& grid, const Panel& panel, const Ranked& value);

}  // namespace attnbench::result
