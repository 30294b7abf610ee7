#include "reports/page/page_tables.hpp"

#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"
#include "reports/page/facts.hpp"
#include "reports/tables/conditions.hpp"
#include "reports/tables/grid.hpp"

namespace attnbench::reports {
namespace {}  // namespace

std::string grid_html(const std::string& axis, const Grid& grid, const std::string& attributes) {
  std::string html = grid.title.empty() ? "" : element("h3", grid.title);
  if (!grid.note.empty()) html += "\n" + element("p", grid.note, " class=\"dim\"");
  if (!grid.best.empty()) {
    html += "\n" + element("p", "Bold: best at its place, or not to be told from the best.",
                           " class=\"dim\"");
  }
  html += "\n<div class=\"scroll\"><table class=\"sortable\"" + attributes + ">\n<tr>" +
          element("th", axis);
  for (const std::string& column : grid.columns) html += element("th", column);
  html += "</tr>\n";
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    const auto& [name, texts] = grid.rows[row];
    html += "<tr>" + element("td", name);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      html += element("td", texts[i], grid.best.count({row, i}) != 0 ? " class=\"best\"" : "");
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string tables_html(const result::Result& result) {
  std::string html;
  for (const Panel& panel : panels(result)) {
    std::string shared = shared_settings(panel);
    if (!panel.facet.empty()) shared += (shared.empty() ? "" : ", ") + panel.facet_text();
    html += element("p", panel.task_label + ": " + shared, " class=\"dim\"") + "\n";
    for (const Grid& grid : grids_of(panel, text::Letters::utf8)) {
      html += grid_html(axis_title(panel.axis), grid, "");
    }
  }
  return html;
}

std::string statuses_html(const result::Result& result) {
  std::string rows;
  for (const Panel& panel : panels(result)) {
    for (const Placed& placed : panel.cells) {
      const CellRecord& cell = *placed.cell;
      if (result::is_ok(cell)) continue;
      std::string place = placed.series;
      if (placed.x) place += ", " + panel.axis + " " + text::human_value(*placed.x);
      if (!panel.facet.empty()) place += ", " + panel.facet_text();
      rows += "<tr>" + element("td", panel.task_label + ": " + place) +
              element("td", to_string(cell.status),
                      cell.status == Status::unsupported || cell.status == Status::skipped
                          ? ""
                          : " class=\"bad\"") +
              "<td>" + text::escape_html(cell.reason);
      const Json& detail = cell.detail;
      if (!detail.is_null() && detail != "") {
        rows += "<details><summary>more</summary>" +
                element("pre", detail.is_string() ? detail.get<std::string>() : detail.dump(1)) +
                "</details>";
      }
      rows += "</td><td>" + element("code", cell.reproduce) + "</td></tr>\n";
    }
  }
  if (rows.empty()) return "<p>All cells are ok.</p>\n";
  return "<div class=\"scroll\"><table class=\"words\">\n<tr><th>cell</th><th>status</th>"
         "<th>reason</th><th>alone</th></tr>\n" +
         rows + "</table></div>\n";
}

}  // namespace attnbench::reports
