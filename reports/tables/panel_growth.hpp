// The growth of a panel's cells along its axis, beside what their implementations claim.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/tables/grid.hpp"
#include "reports/tables/growth.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::reports {

enum class GrownQuantity { time, workspace };

/// The time from which on the asymptotic part of a cell's time is taken to be what grows.
constexpr double enough_seconds = 5e-3;

/// The exponent that a cell's implementation claims along `axis`: length, latents (of any name) or
/// head_dim (width, with it). Claims are of one forward pass of the mix, which is what `check`
/// holds them to, so that they stand beside cells of the kernel task with scope mix alone: of its
/// time in forward and in forward+backward (the gradient costs a constant times as much as the
/// value), of its workspace in forward (what is kept for backward is not in it). Nothing elsewhere.
std::optional<double> claimed_exponent(const result::CellRecord& cell, GrownQuantity what,
                                       const std::string& axis);

/// A cell's median time, with its bounds, or its workspace, at `size`; nothing where it has none or
/// where its time was disturbed.
std::optional<GrowthPoint> grown_value(const result::CellRecord& cell, GrownQuantity what,
                                       double size);

/// One series: what it claims, if it does, and what was fitted.
struct PanelGrowth {
  std::string series;
  std::optional<double> claimed;
  GrowthFit fit;
  std::string word;  ///< held, missed or cannot tell; empty without a claim
};

/// The growth of every series with a numeric place on an axis of which growth is claimed, in the
/// panel's order. Times from `enough_seconds` on and, in length, sizes from where the claim begins.
/// The verdict is by growth.hpp's rule; a machine whose caches are not known excuses any faster
/// growth of time where what is touched grows, too.
std::vector<PanelGrowth> panel_growth(const Panel& panel, GrownQuantity what);

/// Fitted exponents of time and workspace, and beside them what is claimed, where the cells are of
/// the task and pass that claims are of: "1.00: held", "missed" or "cannot tell", with the reasons
/// in the note. A row for each series with a fit or a claim; without rows where the axis is too
/// short for any fit.
Grid growth_grid(const Panel& panel);

}  // namespace attnbench::reports
