// All figures by their names, of what is timed and of trainings.
#pragma once

#include <string>
#include <vector>

#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// The names `draw` knows: what a suite's "figures" may list.
std::vector<std::string> figure_names();

/// The figures that `name` stands for in `panel`; none where its cells hold nothing to draw.
/// `palette` knows all series of the result.
/// Throws UsageFailure for an unknown name, listing the known ones.
std::vector<Figure> draw(const std::string& name, const Panel& panel, const Palette& palette,
                         const std::vector<PublishedRow>& published);

/// Whether `name` is drawn over all panels of a task together, rather than for each.
bool is_drawn_across(const std::string& name);
/// The figures of such a name, of a task's `panels` among `all` of the result; none where the cells
/// hold nothing to draw.
std::vector<Figure> draw_across(const std::string& name, const std::vector<const Panel*>& panels,
                                const std::vector<const Panel*>& all, const Palette& palette,
                                const std::vector<PublishedRow>& published);

}  // namespace attnbench::reports
