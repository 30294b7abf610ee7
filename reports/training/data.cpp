#include "reports/training/data.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/text/format.hpp"

namespace attnbench::reports {
namespace {

using result::Json;
using result::Panel;
using result::Placed;

/// Whether a setting makes the model another one rather than the data.
bool is_of_model(const std::string& setting) {
  return setting == "width" || setting == "heads" || setting == "head_dim";
}

bool tells_data_apart(const Panel& panel) {
  const bool several = result::axis_values(panel).size() > 1;
  const bool option = !panel.cells.front().cell->at("settings").contains(panel.axis);
  return several && !option && !is_of_model(panel.axis);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> data_of(const Panel& panel, const Json* x) {
  std::vector<std::pair<std::string, std::string>> data;
  for (const auto& setting : panel.facet) {
    if (!is_of_model(setting.first)) data.push_back(setting);
  }
  if (x && tells_data_apart(panel)) data.emplace_back(panel.axis, result::human_value(*x));
  return data;
}

std::vector<Panel> by_data(const Panel& panel) {
  if (!tells_data_apart(panel)) return {panel};
  std::vector<Panel> parts;
  std::map<std::string, std::size_t> place;
  for (const Placed& placed : panel.cells) {
    const std::string value = placed.x ? result::human_value(*placed.x) : "none";
    const auto [at, is_new] = place.emplace(value, parts.size());
    if (is_new) {
      parts.push_back(panel);
      parts.back().facet.emplace_back(panel.axis, value);
      parts.back().cells.clear();
      parts.back().series.clear();
    }
    Panel& part = parts[at->second];
    part.cells.push_back(placed);
    auto& series = part.series;
    if (std::find(series.begin(), series.end(), placed.series) == series.end()) {
      series.push_back(placed.series);
    }
  }
  return parts;
}

}  // namespace attnbench::reports
