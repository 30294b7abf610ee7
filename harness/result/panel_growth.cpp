#include "harness/result/panel_growth.hpp"

#include <nlohmann/json.hpp>

namespace attnbench::result {
namespace {

/// The claim's name for an axis; empty for one that nothing is claimed of.
std::string claim_axis(const std::string& axis) {
  if (axis == "length" || axis == "head_dim") return axis;
  if (axis == "width") return "head_dim";
  return axis == "latents_total" || axis == "latents_per_head" ? "latents" : "";
}

}  // namespace

std::optional<double> claimed_exponent(const Json& cell, Growing what, const std::string& axis) {
  const std::string named = claim_axis(axis);
  const Json* scope = value_of(cell, "scope");
  const Json growth = cell.value("growth", Json::object());
  const std::string key =
      std::string(what == Growing::time ? "time" : "workspace") + "_in_" + named;
  if (named.empty() || (scope && *scope != "mix")) return std::nullopt;
  if (!growth.contains(key) || !growth[key].is_number()) return std::nullopt;
  return growth[key].get<double>();
}

std::optional<double> grown_value(const Json& cell, Growing what) {
  if (cell["status"] != "ok") return std::nullopt;
  if (what == Growing::workspace) {
    const Json memory = cell.value("memory", Json::object());
    if (!memory.contains("workspace_bytes")) return std::nullopt;
    return memory["workspace_bytes"].get<double>();
  }
  if (!cell.contains("timing")) return std::nullopt;
  return cell["timing"][cell["primary"].get<std::string>()]["median_seconds"].get<double>();
}

std::vector<PanelGrowth> panel_growth(const Panel& panel, Growing what) {
  std::vector<PanelGrowth> all;
  for (const std::string& series : panel.series) {
    std::vector<GrowthPoint> points;
    std::optional<double> claimed;
    for (const Placed& placed : panel.cells) {
      if (placed.series != series || !placed.x || !placed.x->is_number()) continue;
      if (!claimed) claimed = claimed_exponent(*placed.cell, what, panel.axis);
      const auto value = grown_value(*placed.cell, what);
      const double x = placed.x->get<double>();
      if (value && x > 0) points.push_back({x, *value});
    }
    if (!claimed) continue;
    if (what == Growing::time) points = at_least(points, enough_seconds);
    const auto meant = panel.axis == "length" ? GrowthClaim::exponent : GrowthClaim::bound;
    all.push_back({series, *claimed, fit_growth(points, *claimed, meant)});
  }
  return all;
}

}  // namespace attnbench::result
