// What is best in each column of a grid: the fastest or smallest of each place on the axis.
#pragma once

#include <functional>
#include <optional>

#include "core/statistics.hpp"
#include "reports/tables/grid.hpp"

namespace attnbench::reports {

/// A number of a cell that may be ranked; nothing of a cell that has none, or may not be.
using Ranked = std::function<std::optional<Estimate>(const result::CellRecord& cell)>;

/// The times of the panel's cells that are ok and were timed in several processes, with the
/// interval that a statement about them needs: those of the pass or part `what`, else the primary
/// ones.
///
/// From six rounds on that is the stored one. Fewer have the range of their rounds, which is
/// too narrow: three rounds lie within 1 % of each other by chance where those of other cells lie
/// 30 % apart. Their range is widened to what Student's t gives for the scatter that all cells of
/// the panel share.
///
/// What differs from run to run no run can know. In five runs of `quickstart` on an idle virtual
/// machine the ratio of two medians of three rounds differed by 0.83 (training) and 1.3 (decode)
/// times the scatter of rounds within a run. A statement about a ratio adds the reaches of both,
/// 2 · 1.96 / sqrt(3) = 2.3 times that scatter, which covers 99 % and 91 % of it.
Ranked ranked_times(const Panel& panel, const std::string& what = "");

/// A count of bytes, such as memory.workspace_bytes, of a cell that is ok or disturbed.
Ranked exact_bytes(Values result::CellRecord::*part, const char* key);

/// Fills `grid.best` of a grid that has the panel's series down and its axis across. Columns in
/// which nothing is better than anything else get no mark, nor do those with a single number, nor
/// those in which something missing might be better, which the grid's note says.
void mark_least(Grid& grid, const Panel& panel, const Ranked& value);

}  // namespace attnbench::reports
