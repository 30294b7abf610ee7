// The page's tables: what was measured, and the status table of what is not ok.
#pragma once

#include <string>

#include "core/result/document.hpp"

namespace attnbench::reports {

/// Every panel's grids, the best of a row or column marked.
std::string tables_html(const result::Result& result);

/// Cells that are not ok: status, reason, the command that does the cell alone, the log's tail.
std::string statuses_html(const result::Result& result);

}  // namespace attnbench::reports
