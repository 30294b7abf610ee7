// The page's tables: what was measured, and the status table of what is not ok.
#pragma once

#include <string>

#include "core/result/document.hpp"
#include "reports/tables/grid.hpp"

namespace attnbench::reports {

/// A grid as a table that can be sorted, under its title and note; `axis` heads its labels.
std::string grid_html(const std::string& axis, const Grid& grid, const std::string& attributes);

/// Every panel's grids, the best of a row or column marked.
std::string tables_html(const result::Result& result);

/// Cells that are not ok: status, reason, the command that does the cell alone, the log's tail.
std::string statuses_html(const result::Result& result);

}  // namespace attnbench::reports
