// The growth of a panel's cells along its axis, beside what their implementations claim.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/result/growth.hpp"
#include "harness/result/layout.hpp"

namespace attnbench::result {

enum class Growing { time, workspace };

/// From here on the asymptotic part of a cell's time is taken to be what grows.
constexpr double enough_seconds = 5e-3;

/// The exponent that a cell's implementation claims along `axis`: length, latents (of any name) or
/// head_dim (width, with it). Nothing where it claims none, or where something else is measured
/// than the mix alone, whose growth it is.
std::optional<double> claimed_exponent(const Json& cell, Growing what, const std::string& axis);

/// A cell's median time or its workspace; nothing where it has none.
std::optional<double> grown_value(const Json& cell, Growing what);

/// One series: what it claims and what was fitted; times from `enough_seconds` on.
struct PanelGrowth {
  std::string series;
  double claimed = 0;
  GrowthFit fit;
};

/// Of every series with a claim, in the panel's order.
std::vector<PanelGrowth> panel_growth(const Panel& panel, Growing what);

}  // namespace attnbench::result
