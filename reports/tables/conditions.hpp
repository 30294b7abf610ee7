// Conditions: what cells were measured under, in the words of tables, figures and sentences.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/tables/layout.hpp"

namespace attnbench::reports {

/// The columns that say where a point comes from, as (field, title), in the tooltip's order.
const std::vector<std::pair<std::string, std::string>>& provenance_columns();

/// The implementation that ran, with what was asked for where that was not a name.
std::string implementation_of(const result::CellRecord& cell);

/// The provenance columns of one cell, as text; "–" for what it does not have.
Json provenance_row(const result::CellRecord& cell);

/// The settings that all cells of the panel share, be it the number of tokens in a call: "B=1, H=4,
/// D=32, causal, mix, float32, cpu".
std::string shared_settings(const Panel& panel);

/// "95 % over 5 rounds", "range of 3 rounds", "range of 3 rounds, 2 disturbed left out": what
/// the bounds of a timing or a crossover over `rounds` are.
std::string interval_words(const std::string& interval, std::size_t rounds, std::size_t disturbed);

/// The words for an axis: "length T (tokens)".
std::string axis_title(const std::string& axis);

}  // namespace attnbench::reports
