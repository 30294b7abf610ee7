#include "reports/figures/legend.hpp"

#include <nlohmann/json.hpp>

#include "core/result/record.hpp"
#include "core/text/format.hpp"

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

std::string disturbed_words(const result::Panel& panel) {
  std::string text;
  for (const std::string& series : panel.series) {
    std::string places;
    bool any = false;
    for (const result::Placed& placed : panel.cells) {
      if (placed.series != series || !result::is_disturbed(*placed.cell)) continue;
      any = true;
      if (!placed.x) continue;
      places += (places.empty() ? " at " + panel.axis + " " : std::string(", ")) +
                result::human_value(*placed.x);
    }
    if (!any) continue;
    text +=
        (text.empty() ? " Left out, since other programs had the CPU: " : "; ") + series + places;
  }
  return text.empty() ? text : text + ".";
}

}  // namespace attnbench::reports
