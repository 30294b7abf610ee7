// The crossover map: from which length on a mechanism is faster than exact attention, against its
// size, for every scope side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// One figure over all panels of a task: a column per scope, a row per further setting that varies.
/// Points with bars: length and interval. Hollow triangles: the crossover lies beyond what was
/// searched, in the direction they point; hollow diamonds: there is none or more than one, see the
/// tooltip. What has no crossover to draw is said in the caption. Nothing without crossovers.
std::optional<Figure> crossover_figure(const std::vector<const result::Panel*>& panels,
                                       const std::vector<std::string>& order);

}  // namespace attnbench::reports
