// Text for the terminal: aligned columns, and what standard output can show.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace attnbench::commands {

/// Columns of the terminal; `otherwise` where output goes elsewhere or lines are very short.
std::size_t terminal_width(std::size_t otherwise);

/// Whether the locale is UTF-8, by LC_ALL, LC_CTYPE and LANG.
bool is_utf8();

/// Prints on standard output, with statuses and verdicts in colour where it is a terminal that
/// shows colour.
void print_coloured(const std::string& text);

/// Prints text that has escape sequences of ours already, and is printable otherwise.
void print_with_sequences(const std::string& text);

using TableRow = std::vector<std::string>;

/// A width at which no line is broken, for output to a file or another program.
constexpr std::size_t whole_lines = static_cast<std::size_t>(-1);

/// Prints `rows` (the first may be a heading) with two blanks between columns. Cells that begin
/// with a digit or "-" are right-aligned. Where a row is wider than `width`, columns that fit stay
/// aligned and each other column becomes a paragraph beside them.
void print_columns(std::ostream& out, const std::vector<TableRow>& rows,
                   const std::string& indent = "", std::size_t width = whole_lines);

}  // namespace attnbench::commands
