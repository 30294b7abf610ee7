// Grids: a panel's cells as text, labels down and the axis across. What every table is drawn from.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/text/format.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::reports {

/// Text by series and column; empty where a cell has nothing to say.
struct Grid {
  std::string title;  ///< "time of forward", "workspace", "growth exponents in length"
  std::string note;   ///< what holds for all of it, of any length; mostly empty
  std::vector<std::string> columns;
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;
  /// The cells, as (row, column), that are least in their column or cannot be distinguished from
  /// the least.
  std::set<std::pair<std::size_t, std::size_t>> best;
};

struct GridEntry {
  std::string series;
  std::optional<Json> x;  ///< the axis' value; nothing where there is none
  std::string text;
};

/// The panel's series down and its axis across, with a column "any" for what has no place on it.
/// Along the bytes of states, which hardly any two mechanisms share, a row for each size instead.
Grid laid_out(const Panel& panel, const std::string& title, const std::vector<GridEntry>& entries);

/// The grids of a panel. For trainings: see selection.hpp. For crossovers: length and interval,
/// both implementations, efficiency length. Otherwise: median time and interval (or the status of a
/// cell that is not ok; of one that was disturbed its least sample, marked as such, and a note),
/// workspace, state: those that any cell of the panel has. Then growth exponents along the axis,
/// where enough sizes were measured to fit one.
std::vector<Grid> grids_of(const Panel& panel, text::Letters letters);

/// Why cells of one series are not ok, and at which axis values.
struct SeriesFailure {
  std::string series;
  std::string status;
  std::string reason;
  std::string places;  ///< "length 4096, 8192"; empty without an axis
};

/// The failures of a panel, one per series, status and reason.
std::vector<SeriesFailure> findings_of(const Panel& panel);

}  // namespace attnbench::reports
