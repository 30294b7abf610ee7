// Ratios: speedup over the suite's first mechanism, and the share of the floor that each cell reaches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// The time of the first of `order` over that of each series; `timing` names a WHAT of the records,
/// or is empty for what each cell times first. The bounds are those of a quotient of two intervals.
/// Published ratios are drawn apart. Nothing where the first series has no time beside another's.
std::optional<Figure> speedup_figure(const result::Panel& panel,
                                     const std::vector<std::string>& order,
                                     const std::vector<PublishedRow>& published,
                                     const std::string& timing);

/// floor / time of each cell against the axis, coloured by the term that binds. Nothing where no
/// cell has a roofline.
std::optional<Figure> roofline_figure(const result::Panel& panel,
                                      const std::vector<std::string>& order);

}  // namespace attnbench::reports
