// Text for the terminal: aligned columns, and what standard output can show.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace attnbench::commands {

/// Columns of the terminal, or `otherwise` where output goes elsewhere or a line has hardly any
/// room.
std::size_t terminal_width(std::size_t otherwise);

/// Whether the locale's letters go beyond ASCII, by the variables that decide on it.
bool is_utf8();

using Row = std::vector<std::string>;

/// A width that breaks no line: for output that goes to a file or another program.
constexpr std::size_t whole_lines = static_cast<std::size_t>(-1);

/// Prints `rows` (the first may be a heading) with two blanks between columns. Cells that begin
/// with a digit or "-" are set to the right. Where a row is wider than `width`, the columns that
/// fit stay aligned and each of the others is a paragraph beside them.
void print_columns(std::ostream& out, const std::vector<Row>& rows, const std::string& indent = "",
                   std::size_t width = whole_lines);

}  // namespace attnbench::commands
