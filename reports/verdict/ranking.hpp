// The table that ranks: what a verdict found, one line a mechanism, held to exact attention.
#pragma once

#include <string>
#include <vector>

#include "reports/tables/grid.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

/// The tables of `answers`, which are those to `questions`, in their order. The steps and the
/// qualities of a question whose labels are all in the first table of times are columns of that.
std::vector<Ranking> rankings_of(const std::vector<PanelQuestion>& questions,
                                 const std::vector<Answer>& answers);

/// What the columns of a table are of: place, pass, the exact attention behind the ratios, sizes.
std::string where_text(const Ranking& ranking);

/// The table as text, with `where_text` as its note: columns that any line has.
Grid grid_of(const Ranking& ranking, text::Letters letters);

/// The answer in one sentence; empty without one.
std::string headline_of(const Verdict& verdict);

/// Whether an answer is in a table.
bool is_in_table(const Answer& answer);

/// What is at its top left.
inline constexpr const char* ranked_things = "mechanism";

}  // namespace attnbench::reports::verdict
