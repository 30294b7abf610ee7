// Columns: rows of text set in aligned columns, for `plan`, `list` and `describe`.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace attnbench::commands {

using Row = std::vector<std::string>;

/// Prints `rows` (the first may be a heading) with two blanks between columns. Cells that begin
/// with a digit or "-" are set to the right. The last column is left as long as it is.
void print_columns(std::ostream& out, const std::vector<Row>& rows, const std::string& indent = "");

}  // namespace attnbench::commands
