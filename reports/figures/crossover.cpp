#include "reports/figures/crossover.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/result/crossover.hpp"
#include "core/result/record.hpp"
#include "core/text/format.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Placed;

/// What stands where, and what cannot be drawn.
struct CrossoverMarks {
  /// {x, size, y, low, high, kind: found | above | below | other, series, scope_title, group, said,
  /// against, …}, one per mark.
  Json rows = Json::array();
  std::vector<std::string> series;  ///< those drawn, in the panels' order
  std::vector<std::string> scopes;  ///< "scope mix", …
  std::vector<std::string> groups;  ///< "heads 4", …: what varies besides the scope
  std::set<double> sizes;
  std::vector<double> lengths;  ///< all that the axis of lengths has to hold
  std::string not_drawn;        ///< " Not drawn: …", of cells without a place; may be empty
};

/// Where marks of one cell stand, and which mark it is.
struct Mark {
  const char* kind;  ///< found, above, below, other
  double length;
};

/// Empty where there is nothing to draw at a length.
std::vector<Mark> marks_of(const result::Crossover& crossover) {
  const std::string& verdict = crossover.verdict;
  if (verdict == "found") return {{"found", crossover.length.value()}};
  if (verdict == "below") return {{"below", crossover.high.value_or(1)}};
  if (verdict == "above" || verdict == "none") return {{"above", crossover.length_maximum}};
  std::vector<Mark> marks;
  for (const result::Crossing& crossing : crossover.crossings) {
    marks.push_back({"other", crossing.middle()});
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

Json row_of(const Placed& placed, const result::Crossover& crossover, const Mark& mark) {
  const auto whole = [](double length) { return std::to_string(std::lround(length)); };
  Json row = provenance_row(*placed.cell);
  row["series"] = placed.series;
  row["kind"] = mark.kind;
  row["y"] = mark.length;
  row["low"] = crossover.low.value_or(mark.length);
  row["high"] = crossover.high.value_or(mark.length);
  row["said"] = result::crossover_text(crossover);
  row["against"] = crossover.against;
  row["length"] = whole(crossover.length_minimum) + " to " + whole(crossover.length_maximum);
  row["rounds"] = interval_words(crossover.interval, crossover.rounds, crossover.disturbed);
  if (crossover.efficiency) row["efficiency"] = whole(crossover.efficiency->length);
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
  const auto crossover = result::is_ok(cell) ? result::crossover_of(cell) : std::nullopt;
  const std::vector<Mark> marks = crossover ? marks_of(*crossover) : std::vector<Mark>{};
  if (marks.empty()) {
    const std::string why =
        crossover ? result::crossover_text(*crossover) : cell["status"].get<std::string>();
    contents.not_drawn +=
        (contents.not_drawn.empty() ? " Not drawn: " : "; ") + place_of(panel, placed) + ": " + why;
    return;
  }
  add_once(contents.series, placed.series);
  add_once(contents.scopes, scope_of(cell));
  for (const Mark& mark : marks) {
    Json row = row_of(placed, *crossover, mark);
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

Json powers_of_two(const std::vector<double>& lengths) {
  const auto [low, high] = std::minmax_element(lengths.begin(), lengths.end());
  Json ticks = Json::array();
  const int last = static_cast<int>(std::ceil(std::log2(*high)));
  for (int power = static_cast<int>(std::floor(std::log2(*low))); power <= last; ++power) {
    ticks.push_back(std::exp2(power));
  }
  return ticks;
}

/// A layer of the marks of one kind.
Json layer_of(const char* kind, Json mark, Json encoding) {
  return {{"transform", Json::array({{{"filter", std::string("datum.kind == '") + kind + "'"}}})},
          {"mark", std::move(mark)},
          {"encoding", std::move(encoding)}};
}

Json layers_of(const CrossoverMarks& contents, const std::vector<std::string>& order) {
  const Json ticks = powers_of_two(contents.lengths);
  const Json scale = {{"type", "log"},
                      {"base", 2},
                      {"nice", false},
                      {"padding", 8},
                      {"domain", {ticks.front(), ticks.back()}}};
  const Json y = {{"field", "y"},
                  {"type", "quantitative"},
                  {"title", "crossover length T (tokens)"},
                  {"scale", scale},
                  {"axis", {{"values", ticks}, {"format", ","}}}};
  Json range = y;
  range["field"] = "low";
  const Json fields = tooltip({{"series", "label"},
                               {"said", "faster from length"},
                               {"rounds", "interval"},
                               {"against", "compared with"},
                               {"efficiency", "efficiency length (CAB)"}});
  Json layers = Json::array();
  layers.push_back(layer_of("found", {{"type", "line"}, {"strokeWidth", 2}},
                            {{"y", y}, {"opacity", legend_opacity(0.7)}}));
  layers.push_back(
      layer_of("found", {{"type", "rule"}, {"strokeWidth", 2}},
               {{"y", range}, {"y2", {{"field", "high"}}}, {"opacity", legend_opacity(1)}}));
  for (const auto& [kind, shape] :
       {std::pair{"above", "triangle-up"}, {"below", "triangle-down"}, {"other", "diamond"}}) {
    const Json mark = {
        {"type", "point"}, {"filled", false}, {"shape", shape}, {"size", 90}, {"strokeWidth", 2}};
    layers.push_back(
        layer_of(kind, mark, {{"y", y}, {"opacity", legend_opacity(1)}, {"tooltip", fields}}));
  }
  Json points = layer_of("found", {{"type", "point"}, {"filled", true}, {"size", 55}},
                         {{"y", y},
                          {"shape", shape_encoding(contents.series, order)},
                          {"opacity", legend_opacity(1)},
                          {"tooltip", fields}});
  points["params"] = legend_selection();
  layers.push_back(std::move(points));
  return layers;
}

/// All cells in one, for what they share.
Panel joined(const std::vector<const Panel*>& panels) {
  Panel all = *panels.front();
  all.facet.clear();
  all.cells.clear();
  for (const Panel* panel : panels) {
    all.cells.insert(all.cells.end(), panel->cells.begin(), panel->cells.end());
  }
  return all;
}

/// "chunked against softmax/tiled: latte, linear; …": every pair that was compared, and for whom.
std::string sides_of(const Json& rows) {
  std::map<std::string, std::set<std::string>> sides;
  for (const Json& row : rows) {
    sides[row["implementation"].get<std::string>() + " against " +
          row["against"].get<std::string>()]
        .insert(row["series"]);
  }
  std::string text;
  for (const auto& [pair, series] : sides) {
    text.append(text.empty() ? "" : "; ").append(pair).append(": ");
    for (const std::string& name : series) {
      text.append(name == *series.begin() ? "" : ", ").append(name);
    }
  }
  return text;
}

/// "forward", where all cells time it.
std::string pass_of(const Json& rows) {
  const Json& pass = rows.front()["pass"];
  const bool shared =
      std::all_of(rows.begin(), rows.end(), [&](const Json& row) { return row["pass"] == pass; });
  return shared ? ", " + pass.get<std::string>() : "";
}

Json x_of(const CrossoverMarks& contents, const std::string& axis) {
  return {{"field", "x"},
          {"type", "quantitative"},
          {"title", axis_title(axis)},
          {"scale", {{"type", "log"}, {"base", 2}, {"nice", false}, {"padding", 12}}},
          {"axis", {{"values", contents.sizes}, {"format", ","}, {"grid", false}}}};
}

Json header(const char* field, const std::vector<std::string>& values) {
  return {{"field", field},
          {"type", "nominal"},
          {"title", nullptr},
          {"sort", values},
          {"header", {{"labelFontSize", 12}}}};
}

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

}  // namespace

std::optional<Figure> crossover_figure(const std::vector<const Panel*>& panels,
                                       const std::vector<std::string>& order) {
  const CrossoverMarks contents = crossover_marks(panels);
  if (contents.rows.empty()) return std::nullopt;
  const Panel all = joined(panels);
  Figure figure;
  figure.name = file_name(all, "crossover");
  figure.title = "From which length on it is faster than the fastest exact attention";
  figure.group = all.task_label;
  figure.subtitle = shared_settings(all) + pass_of(contents.rows) +
                    ". Implementations: " + sides_of(contents.rows);
  figure.caption =
      "Size: latents, features, bases or projected length, by mechanism; what has none is drawn "
      "all "
      "across. Bars: the interval over rounds in fresh processes, each a search by paired times. "
      "Hollow "
      "triangles: the crossover lies beyond the lengths searched, or there is none, in the "
      "direction they point; hollow diamonds: the sign changes otherwise, see the tooltip." +
      contents.not_drawn + (contents.not_drawn.empty() ? "" : ".");
  const std::size_t columns = contents.scopes.size();
  const int width = columns == 1 ? 560 : columns == 2 ? 300 : 220;
  Json facet = {{"column", header("scope_title", contents.scopes)}};
  if (contents.groups.size() > 1) facet["row"] = header("group", contents.groups);
  figure.spec = {
      {"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
      {"title", {{"text", figure.title}, {"subtitle", wrapped_lines(figure.subtitle)}}},
      {"data", {{"name", "measured"}, {"values", contents.rows}}},
      {"facet", facet},
      {"spec",
       {{"width", width},
        {"height", 300},
        {"encoding",
         {{"x", x_of(contents, all.axis)}, {"color", colour_encoding(contents.series, order)}}},
        {"layer", layers_of(contents, order)}}},
      {"config", frame_config()}};
  return figure;
}

}  // namespace attnbench::reports
