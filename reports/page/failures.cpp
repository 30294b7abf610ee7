#include "reports/page/failures.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "reports/figures/legend.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"

namespace attnbench::reports {
namespace {

/// Cells that ended without a number though they could have had one, in rows ("slot") from above.
Json failure_rows(const result::Panel& panel) {
  static const std::set<std::string> shown{"wrong", "out_of_memory", "timeout", "crashed", "error"};
  Json rows = Json::array();
  std::map<std::string, int> stacked;
  for (const result::Placed& placed : panel.cells) {
    const std::string status = (*placed.cell)["status"].get<std::string>();
    if (!shown.contains(status)) continue;
    for (const Json& x : places(panel, placed)) {
      Json row = provenance_row(*placed.cell);
      row.update({{"x", x},
                  {"series", placed.series},
                  {"status", status},
                  {"reason", placed.cell->value("reason", "")},
                  {"slot", ++stacked[x.dump()]}});
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

Json failure_layers(const result::Panel& panel) {
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

std::set<std::string> failed_series(const result::Panel& panel) {
  return series_of(failure_rows(panel));
}

int failure_height(const result::Panel& panel) {
  int rows = 0;
  for (const Json& row : failure_rows(panel)) rows = std::max(rows, row["slot"].get<int>());
  return rows;
}

}  // namespace attnbench::reports
