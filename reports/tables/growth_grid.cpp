#include "reports/tables/growth_grid.hpp"

#include <map>

#include "reports/tables/panel_growth.hpp"

namespace attnbench::result {
namespace {

/// Reasons why claims are not held, each once with the series that it is of.
using Reasons = std::map<std::string, std::string>;

void add_reason(Reasons& reasons, const char* what, const PanelGrowth& grown) {
  if (!grown.claimed || grown.word == "held") return;
  std::string& names = reasons[grown.fit.reason];
  names += (names.empty() ? "" : ", ") + grown.series + " (" + what + ")";
}

std::string words_of(const Reasons& reasons) {
  if (reasons.empty()) return "";
  std::string text = "claims are held as `attnbench check` holds them";
  for (const auto& [reason, names] : reasons) text += "; " + names + ": " + reason;
  return text;
}

}  // namespace

Grid growth_grid(const Panel& panel) {
  Grid grid;
  grid.title = "growth exponents in " + panel.axis;
  std::map<std::string, std::vector<std::string>> texts;
  bool any = false;
  Reasons reasons;
  for (const auto& [what, word] :
       {std::pair{Growing::time, "time"}, {Growing::workspace, "workspace"}}) {
    bool fitted = false;
    bool claimed = false;
    const std::vector<PanelGrowth> all = panel_growth(panel, what);
    for (const PanelGrowth& grown : all) {
      fitted = fitted || grown.fit.measured;
      claimed = claimed || grown.claimed;
    }
    if (!fitted && !claimed) continue;
    any = any || fitted;
    grid.columns.push_back(word);
    if (claimed) grid.columns.push_back("claimed");
    for (const PanelGrowth& grown : all) {
      std::vector<std::string>& row = texts[grown.series];
      row.resize(grid.columns.size());
      const std::size_t column = grid.columns.size() - (claimed ? 2 : 1);
      if (grown.fit.measured) row[column] = exponent_text(*grown.fit.measured);
      if (grown.claimed) row[column + 1] = exponent_text(*grown.claimed) + ": " + grown.word;
      add_reason(reasons, word, grown);
    }
  }
  if (!any) return grid;
  grid.note = words_of(reasons);
  for (const std::string& series : panel.series) {
    std::vector<std::string>& row = texts[series];
    row.resize(grid.columns.size());
    bool filled = false;
    for (const std::string& text : row) filled = filled || !text.empty();
    if (filled) grid.rows.emplace_back(series, row);
  }
  return grid;
}

}  // namespace attnbench::result
