// Share of the floor: how much of what the machine could do each cell does.
#pragma once

#include <optional>

#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// floor / time of each cell against the axis, coloured by the term that binds. Nothing where no
/// cell has a roofline.
std::optional<Figure> roofline_figure(const result::Panel& panel,
                                      const std::vector<std::string>& order);

}  // namespace attnbench::reports
