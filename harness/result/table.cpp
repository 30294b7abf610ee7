#include "harness/result/table.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "harness/result/layout.hpp"
#include "harness/result/record.hpp"

namespace attnbench::result {
namespace {

/// One quantity of a cell as text; empty where the cell does not have it.
using Quantity = std::function<std::string(const Json& cell)>;

/// Text by series and column.
struct Grid {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;
};

std::string repeat(const std::string& piece, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

bool is_ok(const Json& cell) { return cell["status"] == "ok"; }

Quantity time_in(Letters letters) {
  return [letters](const Json& cell) -> std::string {
    if (!is_ok(cell)) return cell["status"].get<std::string>();
    if (!cell.contains("timing")) return "";
    const Json& timing = cell["timing"][cell["primary"].get<std::string>()];
    const double median = timing["median_seconds"].get<double>();
    return human_seconds(median, letters) + " " +
           human_spread(median, timing["low_seconds"].get<double>(),
                        timing["high_seconds"].get<double>(), letters);
  };
}

Quantity bytes_of(const char* part, const char* key) {
  return [part, key](const Json& cell) -> std::string {
    if (!is_ok(cell) || !cell.contains(part) || !cell[part].contains(key)) return "";
    const Json& value = cell[part][key];
    return value.is_number() ? human_bytes(value.get<double>()) : "";
  };
}

/// What the panel's times are of: its cells' primary, where they agree.
std::string time_title(const Panel& panel) {
  std::string title;
  for (const Placed& placed : panel.cells) {
    if (!placed.cell->contains("primary")) continue;
    const std::string primary = (*placed.cell)["primary"].get<std::string>();
    if (!title.empty() && title != primary) return "time";
    title = primary;
  }
  return title.empty() ? "time" : "time of " + title;
}

Grid grid_of(const Panel& panel, const std::string& title, const Quantity& quantity) {
  Grid grid;
  grid.title = title;
  const std::vector<const Json*> values = axis_values(panel);
  for (const Json* value : values) grid.columns.push_back(human_value(*value));
  const bool any_without = std::any_of(panel.cells.begin(), panel.cells.end(),
                                       [](const Placed& placed) { return !placed.x; });
  if (any_without) grid.columns.push_back(values.empty() ? "" : "any");
  std::map<std::string, std::size_t> row_of;
  for (const std::string& series : panel.series) {
    row_of[series] = grid.rows.size();
    grid.rows.emplace_back(series, std::vector<std::string>(grid.columns.size()));
  }
  for (const Placed& placed : panel.cells) {
    std::size_t column = grid.columns.size() - 1;
    for (std::size_t i = 0; placed.x && i < values.size(); ++i) {
      if (*values[i] == *placed.x) column = i;
    }
    grid.rows[row_of[placed.series]].second[column] = quantity(*placed.cell);
  }
  return grid;
}

bool has_content(const Grid& grid) {
  return std::any_of(grid.rows.begin(), grid.rows.end(), [](const auto& row) {
    return std::any_of(row.second.begin(), row.second.end(),
                       [](const std::string& text) { return !text.empty(); });
  });
}

/// As many columns as fit, then the rest below under the same labels.
std::string draw(const Grid& grid, const std::string& axis, const TableStyle& style) {
  std::size_t label_width = std::max(display_width(grid.title), display_width(axis));
  for (const auto& row : grid.rows) label_width = std::max(label_width, display_width(row.first));
  label_width = std::min(label_width, std::max<std::size_t>(12, style.width * 2 / 5));
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < grid.columns.size(); ++i) {
    widths.push_back(display_width(grid.columns[i]));
    for (const auto& row : grid.rows) {
      widths[i] = std::max(widths[i], display_width(row.second[i]));
    }
  }
  const std::string rule = style.letters == Letters::utf8 ? "─" : "-";
  std::string text;
  for (std::size_t begin = 0; begin < grid.columns.size();) {
    std::size_t end = begin;
    std::size_t used = label_width;
    while (end < widths.size() && (end == begin || used + 2 + widths[end] <= style.width)) {
      used += 2 + widths[end++];
    }
    const auto line = [&](const std::string& name, const std::vector<std::string>& texts) {
      std::string content = pad_right(shorten(name, label_width, style.letters), label_width);
      for (std::size_t i = begin; i < end; ++i) content += "  " + pad_left(texts[i], widths[i]);
      content.erase(content.find_last_not_of(' ') + 1);
      return content + "\n";
    };
    text += pad_right(shorten(grid.title, label_width, style.letters), label_width);
    text.append("\n").append(line(axis, grid.columns));
    text.append(repeat(rule, std::min(used, style.width))).append("\n");
    for (const auto& row : grid.rows) text += line(row.first, row.second);
    begin = end;
  }
  return text;
}

/// Why cells of one series have no time, and at which axis values.
struct Finding {
  std::string series;
  std::string why;
  std::string places;
};

std::vector<Finding> findings_of(const Panel& panel) {
  std::vector<Finding> findings;
  for (const Placed& placed : panel.cells) {
    const Json& cell = *placed.cell;
    if (is_ok(cell)) continue;
    const std::string why = cell["status"].get<std::string>() + ": " + cell.value("reason", "");
    auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& other) {
      return other.series == placed.series && other.why == why;
    });
    if (found == findings.end()) found = findings.insert(found, {placed.series, why, ""});
    if (!placed.x) continue;
    found->places += found->places.empty() ? " at " + panel.axis + ' ' : std::string(", ");
    found->places += human_value(*placed.x);
  }
  return findings;
}

}  // namespace

std::string table(const Json& result, const TableStyle& style) {
  std::string text;
  for (const Panel& panel : panels(result)) {
    if (!text.empty()) text += '\n';
    text += panel.task_label;
    if (!panel.facet.empty()) text += ", " + panel.facet_text();
    text += '\n';
    const std::vector<Grid> grids{
        grid_of(panel, time_title(panel), time_in(style.letters)),
        grid_of(panel, "workspace", bytes_of("memory", "workspace_bytes")),
        grid_of(panel, "state", bytes_of("metrics", "state_bytes"))};
    for (const Grid& grid : grids) {
      if (has_content(grid)) text.append("\n").append(draw(grid, panel.axis, style));
    }
    const std::vector<Finding> findings = findings_of(panel);
    if (!findings.empty()) text += '\n';
    for (const Finding& finding : findings) {
      text.append("  ").append(finding.series).append(finding.places).append(": ");
      text.append(finding.why).append("\n");
    }
  }
  return text;
}

std::string status_line(const Json& result) {
  const Json& cells = result["attnbench"]["cells"];
  std::string text = std::to_string(cells.size()) + (cells.size() == 1 ? " cell" : " cells");
  std::string separator = ": ";
  for (const std::string& word : status_words()) {
    const auto count = std::count_if(cells.begin(), cells.end(), [&](const Json& cell) {
      return cell["status"].get_ref<const std::string&>() == word;
    });
    if (count == 0) continue;
    text += separator + std::to_string(count) + " " + word;
    separator = ", ";
  }
  return text;
}

}  // namespace attnbench::result
