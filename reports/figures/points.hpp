// Points: one row of a figure's data per cell, with everything a tooltip says of it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/tables/layout.hpp"

namespace attnbench::reports {

using result::CellRecord;

/// A number with its bounds; without any of its own both are the number.
struct PlottedValue {
  double value = 0;
  double low = 0;
  double high = 0;
  std::string interval;  ///< "order", "range" or "samples"; empty without bounds
};

/// What a figure takes from a cell; nothing where the cell does not have it.
using Quantity = std::function<std::optional<PlottedValue>(const CellRecord& cell)>;

/// Of a WHAT of timing; the cell's primary where `what` is empty. Cells that are not ok have none.
Quantity time_quantity(const std::string& what);
/// The same of cells that were disturbed alone, which figures mark and nothing is derived from.
Quantity disturbed_time_quantity(const std::string& what);
/// Of bytes such as workspace_bytes of memory, of cells that are ok or whose time was disturbed.
Quantity number_quantity(Values CellRecord::*part, const std::string& key);

/// A factor and the unit it gives: bytes into MiB, seconds into ms.
struct Scale {
  double factor = 1;
  std::string unit;
};
Scale time_scale(const std::vector<double>& seconds);
Scale byte_scale(const std::vector<double>& bytes);

/// The columns that say where a point comes from, as (field, title), in the tooltip's order.
const std::vector<std::pair<std::string, std::string>>& provenance_columns();

/// The implementation that ran, with what was asked for where that was not a name.
std::string implementation_of(const CellRecord& cell);

/// Those columns of one cell, as text; "–" for what it does not have.
Json provenance_row(const CellRecord& cell);

/// The encoding of tooltips: `own` (field, title) first, then the provenance.
Json tooltip(const std::vector<std::pair<std::string, std::string>>& own);

/// "B=1, H=4, D=32, causal, mix, float32, cpu": what all cells of the panel share, be it the number
/// of tokens in a call.
std::string shared_settings(const Panel& panel);

/// "95 % over 5 rounds", "range of 3 rounds", "range of 3 rounds, 2 disturbed left out": what
/// the bounds of a timing or a crossover over `rounds` are.
std::string interval_words(const std::string& interval, std::size_t rounds, std::size_t disturbed);

}  // namespace attnbench::reports
