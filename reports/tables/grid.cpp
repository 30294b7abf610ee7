#include "reports/tables/grid.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "reports/tables/best.hpp"
#include "reports/tables/least.hpp"
#include "reports/tables/panel_growth.hpp"
#include "reports/tables/selection.hpp"

namespace attnbench::reports {
namespace {

Grid row_for_each(const Panel& panel, const std::vector<GridEntry>& entries) {
  Grid grid;
  grid.columns = {""};
  for (const std::string& series : panel.series) {
    const std::size_t before = grid.rows.size();
    for (const GridEntry& entry : entries) {
      if (entry.series != series) continue;
      const std::string size = entry.x ? ", " + text::human_bytes(entry.x->get<double>()) : "";
      grid.rows.emplace_back(series + size, std::vector<std::string>{entry.text});
    }
    if (grid.rows.size() == before) grid.rows.emplace_back(series, std::vector<std::string>{""});
  }
  return grid;
}

Grid axis_across(const Panel& panel, const std::vector<GridEntry>& entries) {
  Grid grid;
  const std::vector<Json> values = axis_values(panel);
  for (const Json& value : values) grid.columns.push_back(text::human_value(value));
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
      if (values[i] == *entry.x) column = i;
    }
    grid.rows[row_of[entry.series]].second[column] = entry.text;
  }
  return grid;
}

/// One quantity of a cell as text; empty where the cell does not have it.
using CellText = std::function<std::string(const result::CellRecord& cell)>;

/// Bytes of a disturbed cell are what they are.
bool has_bytes(const result::CellRecord& cell) {
  return result::is_ok(cell) || result::is_disturbed(cell);
}

CellText time_in(text::Letters letters) {
  return [letters](const result::CellRecord& cell) -> std::string {
    const result::Timing* const timing = has_bytes(cell) ? result::timing_of(cell) : nullptr;
    if (timing == nullptr) return result::is_ok(cell) ? "" : to_string(cell.status);
    if (result::is_disturbed(cell)) return disturbed_text(least_seconds(*timing), letters);
    return text::measured_seconds(timing->median_seconds, timing->low_seconds, timing->high_seconds,
                                  letters) +
           " " +
           text::human_spread(timing->median_seconds, timing->low_seconds, timing->high_seconds,
                              letters);
  };
}

/// How far beyond its median the widest unsteady interval of `panel` reaches; 0 where none is.
double widest_unsteady(const Panel& panel) {
  double widest = 0;
  for (const Placed& placed : panel.cells) {
    const result::Timing* const timing =
        result::is_ok(*placed.cell) ? result::timing_of(*placed.cell) : nullptr;
    if (timing == nullptr) continue;
    const double ratio = timing->high_seconds / timing->median_seconds;
    if (ratio > 2) widest = std::max(widest, ratio);
  }
  return widest;
}

CellText bytes_of(Values result::CellRecord::*part, const char* key) {
  return [part, key](const result::CellRecord& cell) -> std::string {
    const auto bytes = has_bytes(cell) ? number_of(cell.*part, key) : std::nullopt;
    return bytes ? text::human_bytes(*bytes) : "";
  };
}

/// The rate of generation, where a cell generates; of one that was disturbed it is not known.
std::string tokens_per_second(const result::CellRecord& cell) {
  const auto rate = has_bytes(cell) ? number_of(cell.metrics, "tokens_per_second") : std::nullopt;
  if (!rate) return "";
  if (result::is_disturbed(cell)) return to_string(cell.status);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f", *rate);
  return text.data();
}

/// What the panel's times are of: its cells' primary, where they agree.
std::string time_title(const Panel& panel) {
  std::string title;
  for (const Placed& placed : panel.cells) {
    const std::string& primary = placed.cell->primary;
    if (primary.empty()) continue;
    if (!title.empty() && title != primary) return "time";
    title = primary;
  }
  return title.empty() ? "time" : "time of " + title;
}

Grid grid_of(const Panel& panel, const std::string& title, const CellText& quantity) {
  std::vector<GridEntry> entries;
  for (const Placed& placed : panel.cells) {
    entries.push_back({placed.series, placed.x, quantity(*placed.cell)});
  }
  return laid_out(panel, title, entries);
}

void add_disturbed_note(Grid& grid, const Panel& panel) {
  const bool any = std::any_of(panel.cells.begin(), panel.cells.end(), [](const Placed& placed) {
    return result::is_disturbed(*placed.cell);
  });
  if (any) grid.note.append(grid.note.empty() ? "" : "; ").append(result::disturbed_note);
}

/// What is noted of a mechanism in Python, of each series where getting into Python weighs most.
void add_python_notes(Grid& grid, const Panel& panel) {
  std::map<std::string, std::pair<double, std::string>> worst;
  for (const Placed& placed : panel.cells) {
    const Json* const python = find_value(placed.cell->further, "python");
    if (python == nullptr || !python->is_object() || !python->contains("notes")) continue;
    std::string text;
    for (const Json& note : python->at("notes")) {
      if (note.is_string()) text += (text.empty() ? "" : ", ") + note.get<std::string>();
    }
    const Json share = python->value("call_share", Json());
    const double weight = share.is_number() ? share.get<double>() : 0;
    const auto known = worst.find(placed.series);
    if (known == worst.end() || known->second.first < weight) {
      worst[placed.series] = {weight, text};
    }
  }
  for (const auto& [series, note] : worst) {
    grid.note.append(grid.note.empty() ? "" : "; ").append(series + ": " + note.second);
  }
}

Grid time_grid(const Panel& panel, text::Letters letters) {
  Grid grid = grid_of(panel, time_title(panel), time_in(letters));
  const double widest = widest_unsteady(panel);
  if (widest > 0) {
    std::array<char, 32> factor{};
    std::snprintf(factor.data(), factor.size(), widest < 9.95 ? "%.1f" : "%.0f", widest);
    grid.note = std::string("unsteady: the interval reaches beyond twice the median, here up to ") +
                factor.data() + " times it; `attnbench doctor` says what disturbs this machine";
  }
  add_disturbed_note(grid, panel);
  add_python_notes(grid, panel);
  return grid;
}

bool has_crossovers(const Panel& panel) {
  return std::any_of(panel.cells.begin(), panel.cells.end(),
                     [](const Placed& placed) { return placed.cell->crossover.has_value(); });
}

/// A number of the kind "1877 (R2 0.99 and 0.98)".
std::string efficiency_text(const result::Crossover& crossover) {
  if (!crossover.efficiency) return "";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.0f (R2 %.3f, %.3f)", crossover.efficiency->length,
                crossover.efficiency->r2_exact, crossover.efficiency->r2_mechanism);
  return text.data();
}

/// A crossover means nothing without all of this.
std::string crossover_conditions(const Panel& panel) {
  std::string text;
  const auto add = [&](const std::string& prefix, const auto& value) {
    std::set<std::string> values;
    for (const Placed& placed : panel.cells) values.insert(value(*placed.cell));
    std::string list;
    for (const std::string& one : values) list += (list.empty() ? "" : " or ") + one;
    text += (text.empty() ? "" : ", ") + prefix + list;
  };
  const auto sized = [](const char* key) {
    return [key](const result::CellRecord& cell) {
      const auto value = size_of(cell, key);
      return value ? text::human_value(*value) : std::string("unknown");
    };
  };
  add("B·H=", [&](const result::CellRecord& cell) {
    return sized("batch")(cell) + "·" + sized("heads")(cell);
  });
  add("D=", sized("head_dim"));
  for (const char* key : {"pattern", "pass"}) add("", sized(key));
  add("scope ", sized("scope"));
  add("", sized("dtype"));
  add("", [](const result::CellRecord& cell) { return cell.device; });
  return text;
}

/// What `text` says of a cell's crossover; its status where it has none.
CellText of_crossover(const std::function<std::string(const result::Crossover&)>& text,
                      bool with_status) {
  return [text, with_status](const result::CellRecord& cell) -> std::string {
    if (!result::is_ok(cell)) return with_status ? to_string(cell.status) : "";
    return cell.crossover ? text(*cell.crossover) : "";
  };
}

std::vector<Grid> crossover_grids(const Panel& panel) {
  const auto sides = [](const result::Crossover& crossover) {
    return crossover.implementation + " : " + crossover.against;
  };
  std::vector<Grid> grids{
      grid_of(panel, "faster than exact attention from this length T on (interval)",
              of_crossover(result::crossover_text, true)),
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

std::vector<Grid> grids_of(const Panel& panel, text::Letters letters) {
  std::vector<Grid> grids =
      has_trainings(panel) ? training_grids(panel)
      : has_crossovers(panel)
          ? crossover_grids(panel)
          : std::vector<Grid>{
                time_grid(panel, letters),
                grid_of(panel, "workspace",
                        bytes_of(&result::CellRecord::memory, "workspace_bytes")),
                grid_of(panel, "state", bytes_of(&result::CellRecord::metrics, "state_bytes")),
                grid_of(panel, "generated tokens per second", tokens_per_second)};
  if (!has_trainings(panel) && !has_crossovers(panel)) {
    mark_least(grids[0], panel, ranked_times(panel));
    mark_least(grids[1], panel, exact_bytes(&result::CellRecord::memory, "workspace_bytes"));
    mark_least(grids[2], panel, exact_bytes(&result::CellRecord::metrics, "state_bytes"));
  }
  grids.push_back(growth_grid(panel));
  std::erase_if(grids, [](const Grid& grid) { return !has_content(grid); });
  return grids;
}

std::vector<SeriesFailure> findings_of(const Panel& panel) {
  std::vector<SeriesFailure> findings;
  for (const Placed& placed : panel.cells) {
    if (result::is_ok(*placed.cell)) continue;
    const std::string status = to_string(placed.cell->status);
    const std::string& reason = placed.cell->reason;
    auto found = std::find_if(findings.begin(), findings.end(), [&](const SeriesFailure& other) {
      return other.series == placed.series && other.status == status && other.reason == reason;
    });
    if (found == findings.end())
      found = findings.insert(found, {placed.series, status, reason, ""});
    if (!placed.x) continue;
    found->places += found->places.empty() ? panel.axis + ' ' : std::string(", ");
    found->places += text::human_value(*placed.x);
  }
  return findings;
}

}  // namespace attnbench::reports
