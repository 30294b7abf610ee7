// Tables of a result: the one that a run ends with on the terminal, and those for documents and
// spreadsheets. Labels down, the axis across.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "core/text/format.hpp"

namespace attnbench::result {

using Json = nlohmann::json;

struct TableStyle {
  std::size_t width = 80;  ///< columns of the terminal; wide tables are broken into blocks
  Letters letters = Letters::utf8;
};

/// Per panel: median time and interval, workspace, state; then every cell that is not ok with its
/// reason. `result` is a result.json's value. Ends with a newline; empty without cells.
std::string table(const Json& result, const TableStyle& style);

/// "24 cells: 20 ok, 2 unsupported, 2 out_of_memory".
std::string status_line(const Json& result);

/// What to do about disturbed cells of the run in `folder`; empty where there are none.
std::string disturbed_line(const Json& result, const std::string& folder);

}  // namespace attnbench::result

namespace attnbench::reports {

using Json = nlohmann::json;

/// Labels down, axis across, one table per panel and quantity; then what is not ok.
std::string markdown_tables(const Json& result);
/// The same as LaTeX tables for the booktabs package, to be \input.
std::string latex_tables(const Json& result);
/// Every cell and timing as one line, all numbers unrounded in the units of their columns.
std::string csv_table(const Json& result);

}  // namespace attnbench::reports
