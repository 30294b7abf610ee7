// Tables of a result: the one that a run ends with on the terminal, and those for documents and
// spreadsheets. Labels down, the axis across.
#pragma once

#include <cstddef>
#include <string>

#include "core/result/document.hpp"
#include "core/text/format.hpp"
#include "reports/tables/grid.hpp"

namespace attnbench::reports {

struct TableStyle {
  std::size_t width = 80;  ///< columns of the terminal; wide tables are broken into blocks
  text::Letters letters = text::Letters::utf8;
  bool colour = false;  ///< escape sequences for what is best; all else is printable then
};

/// The tables of a result, per panel: median time and interval, workspace, state; then every cell
/// that is not ok with its reason. Ends with a newline; empty without cells.
std::string table(const result::Result& result, const TableStyle& style);

/// The cells of `table` that are not ok alone, under their panels' names; empty where all are.
std::string failures(const result::Result& result, const TableStyle& style);

/// One grid under its title and note, `axis` above its labels: as many columns as fit, then the
/// rest below under the same labels.
std::string table(const Grid& grid, const std::string& axis, const TableStyle& style);

/// The numbers of cells by status: "24 cells: 20 ok, 2 unsupported, 2 out_of_memory".
std::string status_line(const result::Result& result);

/// What to do about disturbed cells of the run in `folder`; empty where there are none.
std::string disturbed_line(const result::Result& result, const std::string& folder);

}  // namespace attnbench::reports

namespace attnbench::reports {

/// Labels down, axis across, one table per panel and quantity; then what is not ok.
std::string markdown_tables(const result::Result& result);
/// The tables in LaTeX, for the booktabs package, to be \input.
std::string latex_tables(const result::Result& result);

}  // namespace attnbench::reports
