#include "reports/tables/grid.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/result/crossover.hpp"
#include "core/result/record.hpp"
#include "reports/tables/panel_growth.hpp"
#include "reports/tables/selection.hpp"

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

/// One quantity of a cell as text; empty where the cell does not have it.
using Quantity = std::function<std::string(const Json& cell)>;

/// In place of how exact a number is, whose cell was disturbed.
constexpr const char* mark = "disturbed";

/// Bytes of a disturbed cell are what they are; its times are marked.
bool has_bytes(const Json& cell) { return is_ok(cell) || is_disturbed(cell); }

Quantity time_in(Letters letters) {
  return [letters](const Json& cell) -> std::string {
    const auto timing = has_bytes(cell) ? timing_of(cell) : std::nullopt;
    if (!timing) return is_ok(cell) ? "" : cell["status"].get<std::string>();
    const std::string median = human_seconds(timing->median_seconds, letters) + " ";
    if (is_disturbed(cell)) return median + mark;
    return median +
           human_spread(timing->median_seconds, timing->low_seconds, timing->high_seconds, letters);
  };
}

/// How far beyond its median the widest unsteady interval of `panel` reaches; 0 where none is.
double widest_unsteady(const Panel& panel) {
  double widest = 0;
  for (const Placed& placed : panel.cells) {
    const Json& cell = *placed.cell;
    const auto timing = is_ok(cell) ? timing_of(cell) : std::nullopt;
    if (!timing) continue;
    const double ratio = timing->high_seconds / timing->median_seconds;
    if (ratio > 2) widest = std::max(widest, ratio);
  }
  return widest;
}

Quantity bytes_of(const char* part, const char* key) {
  return [part, key](const Json& cell) -> std::string {
    if (!has_bytes(cell) || !cell.contains(part) || !cell[part].contains(key)) return "";
    const Json& value = cell[part][key];
    return value.is_number() ? human_bytes(value.get<double>()) : "";
  };
}

/// Of generation, where a cell generates.
std::string tokens_per_second(const Json& cell) {
  const Json metrics = has_bytes(cell) ? cell.value("metrics", Json::object()) : Json::object();
  if (!metrics.contains("tokens_per_second")) return "";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f", metrics["tokens_per_second"].get<double>());
  return text.data() + (is_disturbed(cell) ? std::string(" ") + mark : "");
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
  std::vector<GridEntry> entries;
  for (const Placed& placed : panel.cells) {
    entries.push_back({placed.series, placed.x, quantity(*placed.cell)});
  }
  return laid_out(panel, title, entries);
}

void add_disturbed_note(Grid& grid, const Panel& panel) {
  const bool any = std::any_of(panel.cells.begin(), panel.cells.end(),
                               [](const Placed& placed) { return is_disturbed(*placed.cell); });
  if (any) grid.note.append(grid.note.empty() ? "" : "; ").append(disturbed_note);
}

Grid time_grid(const Panel& panel, Letters letters) {
  Grid grid = grid_of(panel, time_title(panel), time_in(letters));
  const double widest = widest_unsteady(panel);
  if (widest > 0) {
    std::array<char, 32> factor{};
    std::snprintf(factor.data(), factor.size(), widest < 9.95 ? "%.1f" : "%.0f", widest);
    grid.note = std::string("unsteady: the interval reaches beyond twice the median, here up to ") +
                factor.data() + " times it; `attnbench doctor` says what disturbs this machine";
  }
  add_disturbed_note(grid, panel);
  return grid;
}

bool has_crossovers(const Panel& panel) {
  return std::any_of(panel.cells.begin(), panel.cells.end(),
                     [](const Placed& placed) { return placed.cell->contains("crossover"); });
}

/// A number of the kind "1877 (R2 0.99 and 0.98)".
std::string efficiency_text(const Crossover& crossover) {
  if (!crossover.efficiency) return "";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.0f (R2 %.3f, %.3f)", crossover.efficiency->length,
                crossover.efficiency->r2_exact, crossover.efficiency->r2_mechanism);
  return text.data();
}

/// A crossover is of no use without all of this.
std::string crossover_conditions(const Panel& panel) {
  std::string text;
  const auto add = [&](const std::string& prefix, const auto& value) {
    std::set<std::string> values;
    for (const Placed& placed : panel.cells) values.insert(value(*placed.cell));
    std::string list;
    for (const std::string& one : values) list += (list.empty() ? "" : " or ") + one;
    text += (text.empty() ? "" : ", ") + prefix + list;
  };
  const auto sized = [](const Json& cell, const char* key) {
    const Json problem = cell.value("problem", Json::object());
    const Json* value = problem.contains(key) ? &problem[key] : value_of(cell, key);
    return value ? human_value(*value) : std::string("unknown");
  };
  add("B·H=", [&](const Json& cell) { return sized(cell, "batch") + "·" + sized(cell, "heads"); });
  add("D=", [&](const Json& cell) { return sized(cell, "head_dim"); });
  for (const char* key : {"pattern", "pass"}) {
    add("", [&](const Json& cell) { return sized(cell, key); });
  }
  add("scope ", [&](const Json& cell) { return sized(cell, "scope"); });
  add("", [&](const Json& cell) { return sized(cell, "dtype"); });
  add("", [](const Json& cell) { return cell.value("device", "cpu"); });
  return text;
}

/// What `text` says of a cell's crossover; its status where it has none to speak of.
Quantity of_crossover(const std::function<std::string(const Crossover&)>& text, bool with_status) {
  return [text, with_status](const Json& cell) -> std::string {
    if (!is_ok(cell)) return with_status ? cell["status"].get<std::string>() : "";
    const auto crossover = crossover_of(cell);
    return crossover ? text(*crossover) : "";
  };
}

std::vector<Grid> crossover_grids(const Panel& panel) {
  const auto sides = [](const Crossover& crossover) {
    return crossover.implementation + " : " + crossover.against;
  };
  std::vector<Grid> grids{
      grid_of(panel, "faster than exact attention from this length T on (interval)",
              of_crossover(crossover_text, true)),
      grid_of(panel, "implementations compared there, its own : the exact one",
              of_crossover(sides, false)),
      grid_of(panel, "efficiency length (CAB), read off fits (R2 of both)",
              of_crossover(efficiency_text, false))};
  grids.front().note = crossover_conditions(panel);
  add_disturbed_note(grids.front(), panel);
  return grids;
}

bool has_content(const Grid& grid) {
  return std::any_of(grid.rows.begin(), grid.rows.end(), [](const auto& row) {
    return std::any_of(row.second.begin(), row.second.end(),
                       [](const std::string& text) { return !text.empty(); });
  });
}

}  // namespace

Grid laid_out(const Panel& panel, const std::string& title, const std::vector<GridEntry>& entries) {
  Grid grid =
      panel.axis == state_bytes ? row_for_each(panel, entries) : axis_across(panel, entries);
  grid.title = title;
  return grid;
}

std::vector<Grid> grids_of(const Panel& panel, Letters letters) {
  std::vector<Grid> grids =
      has_trainings(panel) ? training_grids(panel)
      : has_crossovers(panel)
          ? crossover_grids(panel)
          : std::vector<Grid>{time_grid(panel, letters),
                              grid_of(panel, "workspace", bytes_of("memory", "workspace_bytes")),
                              grid_of(panel, "state", bytes_of("metrics", "state_bytes")),
                              grid_of(panel, "generated tokens per second", tokens_per_second)};
  grids.push_back(growth_grid(panel));
  std::erase_if(grids, [](const Grid& grid) { return !has_content(grid); });
  return grids;
}

std::vector<Finding> findings_of(const Panel& panel) {
  std::vector<Finding> findings;
  for (const Placed& placed : panel.cells) {
    const Json& cell = *placed.cell;
    if (is_ok(cell)) continue;
    const std::string status = cell["status"].get<std::string>();
    const std::string reason = cell.value("reason", "");
    auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& other) {
      return other.series == placed.series && other.status == status && other.reason == reason;
    });
    if (found == findings.end())
      found = findings.insert(found, {placed.series, status, reason, ""});
    if (!placed.x) continue;
    found->places += found->places.empty() ? panel.axis + ' ' : std::string(", ");
    found->places += human_value(*placed.x);
  }
  return findings;
}

}  // namespace attnbench::result
