#include "harness/result/growth_grid.hpp"

#include <map>

#include "harness/result/panel_growth.hpp"

namespace attnbench::result {

Grid growth_grid(const Panel& panel) {
  Grid grid;
  grid.title = "growth exponents in " + panel.axis;
  grid.columns = {"time", "claimed", "workspace", "claimed"};
  std::map<std::string, std::vector<std::string>> texts;
  bool any = false;
  for (const Growing what : {Growing::time, Growing::workspace}) {
    const std::size_t column = what == Growing::time ? 0 : 2;
    for (const PanelGrowth& grown : panel_growth(panel, what)) {
      auto& row = texts.try_emplace(grown.series, grid.columns.size()).first->second;
      if (grown.fit.measured) row[column] = exponent_text(*grown.fit.measured);
      row[column + 1] = exponent_text(grown.claimed);
      any = any || grown.fit.measured;
    }
  }
  if (!any) return grid;
  for (const std::string& series : panel.series) {
    if (texts.count(series) != 0) grid.rows.emplace_back(series, texts[series]);
  }
  return grid;
}

}  // namespace attnbench::result
