// What standard output can show.
#pragma once

#include <cstddef>

namespace attnbench::commands {

/// Columns of the terminal, or `otherwise` where output goes elsewhere or a line has hardly any
/// room.
std::size_t terminal_width(std::size_t otherwise);

/// Whether the locale's letters go beyond ASCII, by the variables that decide on it.
bool is_utf8();

}  // namespace attnbench::commands
