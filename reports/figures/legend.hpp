// Which series a figure shows, and the marks of cells that ended without a number. A series without
// a mark has no place in the legend; the caption names it.
#pragma once

#include <set>
#include <string>

#include "reports/tables/layout.hpp"

namespace attnbench::reports {

/// The panel with only those of its series that are among `series`; its cells stay all.
Panel with_series(Panel panel, const std::set<std::string>& series);

/// " Not drawn, for want of a number: latte (error), luna (unsupported).": the panel's series that
/// are not among `series`, with how their cells ended where that was not well; empty where there
/// are none.
std::string not_drawn_words(const Panel& panel, const std::set<std::string>& series);

/// " Left out, since other programs had the CPU: latte at length 512, 1024; linear.": the panel's
/// cells that were disturbed, of which nothing is derived; empty where there are none.
std::string disturbed_words(const Panel& panel);

/// Marks at the upper edge for cells that are wrong, out of memory, timed out or crashed. An array
/// of none or one layer, with a y scale of its own.
Json failure_layers(const Panel& panel);

/// The series that have such marks.
std::set<std::string> failed_series(const Panel& panel);

/// How many marks stand above each other at most.
int failure_height(const Panel& panel);

}  // namespace attnbench::reports
