#include "reports/figures/legend.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/text/format.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"
#include "reports/tables/conditions.hpp"

namespace attnbench::reports {
namespace {

/// "(error, out_of_memory)", or nothing where all of its cells ended well.
std::string endings_of(const std::string& series, const Panel& panel) {
  std::set<std::string> endings;
  for (const Placed& placed : panel.cells) {
    if (placed.series == series) endings.insert(to_string(placed.cell->status));
  }
  endings.erase("ok");
  std::string text;
  for (const std::string& one : endings) text += (text.empty() ? " (" : ", ") + one;
  return text.empty() ? text : text + ")";
}

/// Calls `mark(placed, x, slot)` for each place of the cells that ended without a number though
/// they could have had one; slots count marks from above.
template <class Mark>
void for_each_failure(const Panel& panel, const Mark& mark) {
  static const std::set<Status> shown{Status::wrong, Status::out_of_memory, Status::timeout,
                                      Status::crashed, Status::error};
  std::map<std::string, int> stacked;
  for (const Placed& placed : panel.cells) {
    if (!shown.contains(placed.cell->status)) continue;
    for (const Json& x : places(panel, placed)) mark(placed, x, ++stacked[x.dump()]);
  }
}

Json failure_rows(const Panel& panel) {
  Json rows = Json::array();
  for_each_failure(panel, [&](const Placed& placed, const Json& x, int slot) {
    Json row = provenance_row(*placed.cell);
    row.update({{"x", x},
                {"series", placed.series},
                {"status", placed.cell->status},
                {"reason", placed.cell->reason},
                {"slot", slot}});
    rows.push_back(std::move(row));
  });
  return rows;
}

}  // namespace

Panel with_series(Panel panel, const std::set<std::string>& series) {
  std::erase_if(panel.series, [&](const std::string& name) { return !series.contains(name); });
  return panel;
}

std::string not_drawn_words(const Panel& panel, const std::set<std::string>& series) {
  std::string text;
  for (const std::string& name : panel.series) {
    if (series.contains(name)) continue;
    text += (text.empty() ? " Not drawn, for want of a number: " : ", ") + name +
            endings_of(name, panel);
  }
  return text.empty() ? text : text + ".";
}

std::string disturbed_words(const Panel& panel) {
  std::string text;
  for (const std::string& series : panel.series) {
    std::string places;
    bool any = false;
    for (const Placed& placed : panel.cells) {
      if (placed.series != series || !result::is_disturbed(*placed.cell)) continue;
      any = true;
      if (!placed.x) continue;
      places += (places.empty() ? " at " + panel.axis + " " : std::string(", ")) +
                text::human_value(*placed.x);
    }
    if (!any) continue;
    text +=
        (text.empty() ? " Left out, since other programs had the CPU: " : "; ") + series + places;
  }
  return text.empty() ? text : text + ".";
}

Json failure_layers(const Panel& panel) {
  const Json rows = failure_rows(panel);
  if (rows.empty()) return rows;
  // One row of marks takes 12 of the 340 pixels.
  const Json slot_scale = {{"domain", {0, 28}}, {"reverse", true}, {"nice", false}};
  return Json::array(
      {{{"data", {{"name", "failed"}, {"values", rows}}},
        {"mark",
         {{"type", "point"}, {"shape", "M-1,-1L1,1M-1,1L1,-1"}, {"size", 45}, {"strokeWidth", 2}}},
        {"encoding",
         {{"y",
           {{"field", "slot"}, {"type", "quantitative"}, {"scale", slot_scale}, {"axis", nullptr}}},
          {"opacity", legend_opacity(1)},
          {"tooltip",
           tooltip({{"series", "label"}, {"status", "status"}, {"reason", "reason"}})}}}}});
}

std::set<std::string> failed_series(const Panel& panel) {
  std::set<std::string> series;
  for_each_failure(panel,
                   [&](const Placed& placed, const Json&, int) { series.insert(placed.series); });
  return series;
}

int failure_height(const Panel& panel) {
  int slots = 0;
  for_each_failure(panel,
                   [&](const Placed&, const Json&, int slot) { slots = std::max(slots, slot); });
  return slots;
}

}  // namespace attnbench::reports
