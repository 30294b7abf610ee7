// The table that ranks as text.
#pragma once

#include <string>

#include "reports/tables/grid.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

/// What the columns of a table are of: place, pass, the exact attention behind the ratios, sizes.
std::string where_text(const Ranking& ranking);

/// The table with `where_text` as its note: columns that any line has.
Grid grid_of(const Ranking& ranking, text::Letters letters);

/// What is at its top left.
inline constexpr const char* ranked_things = "mechanism";

}  // namespace attnbench::reports::verdict
