#include "reports/drawn.hpp"

#include <nlohmann/json.hpp>

namespace attnbench::reports {
namespace {

/// "(error, out_of_memory)", or nothing where all of its cells ended well.
std::string endings_of(const std::string& series, const result::Panel& panel) {
  std::set<std::string> endings;
  for (const result::Placed& placed : panel.cells) {
    if (placed.series == series) endings.insert((*placed.cell)["status"].get<std::string>());
  }
  endings.erase("ok");
  std::string text;
  for (const std::string& one : endings) text += (text.empty() ? " (" : ", ") + one;
  return text.empty() ? text : text + ")";
}

}  // namespace

std::set<std::string> series_of(const nlohmann::json& rows) {
  std::set<std::string> series;
  for (const auto& row : rows) {
    if (row.contains("series")) series.insert(row["series"].get<std::string>());
  }
  return series;
}

result::Panel with_series(result::Panel panel, const std::set<std::string>& series) {
  std::erase_if(panel.series, [&](const std::string& name) { return !series.contains(name); });
  return panel;
}

std::string not_drawn_words(const result::Panel& panel, const std::set<std::string>& series) {
  std::string text;
  for (const std::string& name : panel.series) {
    if (series.contains(name)) continue;
    text += (text.empty() ? " Not drawn, for want of a number: " : ", ") + name +
            endings_of(name, panel);
  }
  return text.empty() ? text : text + ".";
}

}  // namespace attnbench::reports
