// The table that ranks: what a verdict found, one line a mechanism, held to exact attention.
#pragma once

#include <string>
#include <vector>

#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

/// The tables of `answers`, which are those to `questions`, in their order. The steps and the
/// qualities of a question whose labels are all in the first table of times are columns of that.
std::vector<Ranking> rankings_of(const std::vector<PanelQuestion>& questions,
                                 const std::vector<Answer>& answers);

/// The answer in one sentence; empty without one.
std::string headline_of(const Verdict& verdict);

/// Whether an answer is in a table.
bool is_in_table(const Answer& answer);

}  // namespace attnbench::reports::verdict
