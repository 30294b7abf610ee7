#include "harness/result/growth_grid.hpp"

#include <map>

#include "harness/result/panel_growth.hpp"

namespace attnbench::result {
namespace {

/// "0.83: missed"; the claim alone where nothing could be fitted.
std::string claim_text(const PanelGrowth& grown) {
  if (!grown.claimed) return "";
  const std::string claimed = exponent_text(*grown.claimed);
  return grown.fit.measured ? claimed + ": " + grown.word : claimed;
}

/// What is behind a claim that is not held, by series.
std::string why_not_held(const std::string& what, const PanelGrowth& grown) {
  if (!grown.claimed || !grown.fit.measured || grown.word == "held") return "";
  return "; " + grown.series + ", " + what + ": " + grown.fit.reason;
}

}  // namespace

Grid growth_grid(const Panel& panel) {
  Grid grid;
  grid.title = "growth exponents in " + panel.axis;
  std::map<std::string, std::vector<std::string>> texts;
  bool any = false;
  std::string reasons;
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
      if (claimed) row[column + 1] = claim_text(grown);
      reasons += why_not_held(word, grown);
    }
  }
  if (!any) return grid;
  if (!reasons.empty()) grid.note = "claims are held as `attnbench check` holds them" + reasons;
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
