#include "reports/tables/grid_layout.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace attnbench::result {
namespace {

Grid row_for_each(const Panel& panel, const std::vector<GridEntry>& entries) {
  Grid grid;
  grid.columns = {""};
  for (const std::string& series : panel.series) {
    const std::size_t before = grid.rows.size();
    for (const GridEntry& entry : entries) {
      if (entry.series != series) continue;
      const std::string size = entry.x ? ", " + human_bytes(entry.x->get<double>()) : "";
      grid.rows.emplace_back(series + size, std::vector<std::string>{entry.text});
    }
    if (grid.rows.size() == before) grid.rows.emplace_back(series, std::vector<std::string>{""});
  }
  return grid;
}

Grid axis_across(const Panel& panel, const std::vector<GridEntry>& entries) {
  Grid grid;
  const std::vector<const Json*> values = axis_values(panel);
  for (const Json* value : values) grid.columns.push_back(human_value(*value));
  const bool any_without =
      std::any_of(entries.begin(), entries.end(), [](const GridEntry& entry) { return !entry.x; });
  if (any_without) grid.columns.push_back(values.empty() ? "" : "any");
  std::map<std::string, std::size_t> row_of;
  for (const std::string& series : panel.series) {
    row_of[series] = grid.rows.size();
    grid.rows.emplace_back(series, std::vector<std::string>(grid.columns.size()));
  }
  for (const GridEntry& entry : entries) {
    std::size_t column = grid.columns.size() - 1;
    for (std::size_t i = 0; entry.x && i < values.size(); ++i) {
      if (*values[i] == *entry.x) column = i;
    }
    grid.rows[row_of[entry.series]].second[column] = entry.text;
  }
  return grid;
}

}  // namespace

Grid laid_out(const Panel& panel, const std::string& title, const std::vector<GridEntry>& entries) {
  Grid grid =
      panel.axis == state_bytes ? row_for_each(panel, entries) : axis_across(panel, entries);
  grid.title = title;
  return grid;
}

}  // namespace attnbench::result
