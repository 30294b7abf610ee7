// Local growth: by which power time or workspace grows between neighbours on the axis.
#pragma once

#include <optional>

#include "reports/figures/figure.hpp"
#include "reports/tables/panel_growth.hpp"

namespace attnbench::reports {

/// The slope of its logarithm over that of the axis between neighbouring cells, beside the
/// exponents that the mechanisms claim of such cells (dashed), with what became of each claim in
/// the caption. Cells whose time was disturbed are left out. Slopes of cells under 5 ms are faint:
/// there constant costs still count. Nothing without two neighbours.
std::optional<Figure> slopes_figure(const result::Panel& panel,
                                    const std::vector<std::string>& order,
                                    result::GrownQuantity what);

}  // namespace attnbench::reports
