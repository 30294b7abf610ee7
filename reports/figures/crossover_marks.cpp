#include "reports/figures/crossover_marks.hpp"

#include <algorithm>
#include <cmath>

#include "core/result/crossover.hpp"
#include "core/result/record.hpp"
#include "core/text/format.hpp"
#include "reports/figures/points.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Placed;

/// Where marks of one cell stand, and which mark it is.
struct Mark {
  const char* kind;  ///< found, above, below, other
  double length;
};

/// Empty where there is nothing to draw at a length.
std::vector<Mark> marks_of(const Json& crossover) {
  const std::string verdict = crossover["verdict"].get<std::string>();
  if (verdict == "found") return {{"found", crossover["length"].get<double>()}};
  if (verdict == "below") return {{"below", crossover.value("high", 1.0)}};
  if (verdict == "above" || verdict == "none") {
    return {{"above", crossover["length_maximum"].get<double>()}};
  }
  std::vector<Mark> marks;
  for (const Json& crossing : crossover.value("crossings", Json::array())) {
    marks.push_back(
        {"other", std::sqrt(crossing["low"].get<double>() * crossing["high"].get<double>())});
  }
  return marks;
}

void add_once(std::vector<std::string>& list, const std::string& word) {
  if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
}

std::string scope_of(const Json& cell) {
  const Json* scope = result::value_of(cell, "scope");
  return "scope " + (scope ? result::human_value(*scope) : std::string("unknown"));
}

/// What tells the panel from others besides the scope: "heads 16".
std::string group_of(const Panel& panel) {
  std::string text;
  for (const auto& [key, value] : panel.facet) {
    if (key == "scope") continue;
    text += (text.empty() ? "" : ", ") + key + " " + value;
  }
  return text;
}

Json row_of(const Placed& placed, const Mark& mark) {
  const Json& cell = *placed.cell;
  const Json& crossover = cell["crossover"];
  Json row = provenance_row(cell);
  row["series"] = placed.series;
  row["kind"] = mark.kind;
  row["y"] = mark.length;
  row["low"] = crossover.value("low", mark.length);
  row["high"] = crossover.value("high", mark.length);
  row["said"] = result::crossover_text(crossover);
  row["against"] = crossover["against"];
  row["length"] = result::human_value(crossover["length_minimum"]) + " to " +
                  result::human_value(crossover["length_maximum"]);
  row["rounds"] = interval_words(crossover.value("interval", ""), crossover["rounds"]);
  if (crossover.contains("efficiency")) {
    row["efficiency"] =
        std::to_string(std::lround(crossover["efficiency"]["length"].get<double>()));
  }
  return row;
}

std::string place_of(const Panel& panel, const Placed& placed) {
  std::string text = placed.series;
  if (placed.x) text += " at " + result::human_value(*placed.x);
  const std::string group = group_of(panel);
  return text + " (" + scope_of(*placed.cell) + (group.empty() ? "" : ", " + group) + ")";
}

void add_cell(CrossoverMarks& contents, const Panel& panel, const Placed& placed) {
  const Json& cell = *placed.cell;
  const bool compared = result::is_ok(cell) && cell.contains("crossover");
  const std::vector<Mark> marks = compared ? marks_of(cell["crossover"]) : std::vector<Mark>{};
  if (marks.empty()) {
    const std::string why =
        compared ? result::crossover_text(cell["crossover"]) : cell["status"].get<std::string>();
    contents.not_drawn +=
        (contents.not_drawn.empty() ? " Not drawn: " : "; ") + place_of(panel, placed) + ": " + why;
    return;
  }
  add_once(contents.series, placed.series);
  add_once(contents.scopes, scope_of(cell));
  for (const Mark& mark : marks) {
    Json row = row_of(placed, mark);
    row["scope_title"] = scope_of(cell);
    row["group"] = group_of(panel);
    contents.lengths.push_back(row["low"].get<double>());
    contents.lengths.push_back(row["high"].get<double>());
    contents.lengths.push_back(mark.length);
    if (placed.x) row["size"] = *placed.x;
    contents.rows.push_back(std::move(row));
  }
}

/// What has no size of its own is drawn at all of them; marks of one size stand a little apart.
void spread(CrossoverMarks& contents) {
  Json rows = Json::array();
  const double middle = (static_cast<double>(contents.series.size()) - 1) / 2;
  for (const Json& row : contents.rows) {
    const auto found = std::find(contents.series.begin(), contents.series.end(), row["series"]);
    const double place = static_cast<double>(found - contents.series.begin()) - middle;
    for (const double size : contents.sizes) {
      if (row.contains("size") && row["size"] != size) continue;
      Json copy = row;
      copy["x"] = size * std::exp2(0.06 * place);
      rows.push_back(std::move(copy));
    }
  }
  contents.rows = std::move(rows);
}

}  // namespace

CrossoverMarks crossover_marks(const std::vector<const Panel*>& panels) {
  CrossoverMarks contents;
  for (const Panel* panel : panels) {
    add_once(contents.groups, group_of(*panel));
    for (const Placed& placed : panel->cells) {
      add_cell(contents, *panel, placed);
      if (placed.x && placed.x->is_number()) contents.sizes.insert(placed.x->get<double>());
    }
  }
  if (contents.sizes.empty()) contents.sizes.insert(1);
  spread(contents);
  return contents;
}

}  // namespace attnbench::reports
