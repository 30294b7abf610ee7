// Trends: a history as series over commits, their change points, figures and a table.
#pragma once

#include <string>
#include <vector>

#include "reports/figures/figure.hpp"
#include "reports/trend/changes.hpp"
#include "reports/trend/history.hpp"

namespace attnbench::reports::trend {

/// One timing of one cell on one machine, by date.
struct Series {
  std::string machine;       ///< fingerprint
  std::string machine_name;  ///< for people
  std::string task;          ///< the first word of its names
  std::string label;
  std::string name;
  std::string what;
  std::vector<HistoryLine> lines;
  bool calibrated = false;  ///< whether all lines have a calibrated median, and `values` are those
  std::vector<double> values;  ///< of the lines
  std::vector<Change> changes;
};

/// The series in the order of the history; machines are never joined.
std::vector<Series> series_of(const std::vector<HistoryLine>& lines);

/// A figure for each machine and task: every series relative to its first value over commits, its
/// changes as marks with their intervals.
std::vector<Figure> figures_of(const std::vector<Series>& series);

/// A Markdown table of all changes, the newest first; a sentence where there are none.
std::string changes_markdown(const std::vector<Series>& series);

}  // namespace attnbench::reports::trend
