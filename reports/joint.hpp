// Several results side by side: their cells as those of one result, so that a figure has the lines
// of all of them.
#pragma once

#include <string>
#include <vector>

#include "core/result/document.hpp"
#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// What tells results apart: the date and the commit, with the time of day where those are equal,
/// with a number where that is, too.
std::vector<std::string> names_apart(const std::vector<result::Result>& results);
/// The one part of those names that tells the results apart, for labels, days of one year without
/// it; the whole name where no part does.
std::vector<std::string> brief_names(const std::vector<result::Result>& results);

/// The cells that several results have, by their ids. Each has its result's name behind its label,
/// "latte · 11-28". Suite, machine and threads are there where all of them have the same. Without
/// cells where no two results share one.
result::Result joined(const std::vector<result::Result>& results,
                      const std::vector<std::string>& names);

/// The figures of what `joined` gave: times, memory and state, each mechanism in its own colour,
/// solid for the first name, dashed for the others. Where a pair of axes has no room for all lines,
/// or two mechanisms have one colour, there are several figures, with a mechanism's lines in one.
std::vector<Figure> joint_figures(const result::Result& joint,
                                  const std::vector<std::string>& names);

}  // namespace attnbench::reports
