#include "reports/figures/kinds.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "core/text/format.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"
#include "reports/figures/ticks.hpp"
#include "reports/tables/conditions.hpp"

namespace attnbench::reports {
namespace {

/// Where marks of one cell stand, and which mark it is.
struct Mark {
  const char* kind;  ///< found, above, below, other
  double length;
};

/// Hollow marks, each with an entry in the legend by a channel that nothing else uses: a legend has
/// but one shape for what is not a series.
struct Hollow {
  const char* kind;
  const char* shape;
  const char* channel;
  const char* words;
};
constexpr Hollow hollows[] = {
    {"above", "triangle-up", "strokeDash", "not faster at any length searched"},
    {"below", "triangle-down", "strokeWidth", "faster at all lengths searched"},
    {"other", "diamond", "strokeOpacity", "changes otherwise, see the tooltip"}};

/// Empty where there is nothing to draw at a length.
std::vector<Mark> marks_of(const result::Crossover& crossover) {
  const std::string& verdict = crossover.verdict;
  if (verdict == "found") return {{"found", crossover.length.value()}};
  if (verdict == "below") return {{"below", crossover.high.value_or(1)}};
  if (verdict == "above" || verdict == "none") {
    return {{"above", static_cast<double>(crossover.length_maximum)}};
  }
  std::vector<Mark> marks;
  for (const result::Crossing& crossing :
       crossover.crossings.value_or(std::vector<result::Crossing>{})) {
    marks.push_back({"other", crossing.middle()});
  }
  return marks;
}

std::string hollow_words(const std::string& kind) {
  for (const Hollow& hollow : hollows) {
    if (kind == hollow.kind) return hollow.words;
  }
  return "";
}

void add_once(std::vector<std::string>& list, const std::string& word) {
  if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
}

std::string scope_of(const CellRecord& cell) {
  const auto scope = value_of(cell, "scope");
  return "scope " + (scope ? text::human_value(*scope) : std::string("unknown"));
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

/// A mark of one cell, with the group of its panel.
struct Marked {
  const Placed* placed;
  Mark mark;
  std::string group;

  const result::Crossover& crossover() const { return *placed->cell->crossover; }
  double low() const { return crossover().low.value_or(mark.length); }
  double high() const { return crossover().high.value_or(mark.length); }
  Json row() const;
};

Json Marked::row() const {
  const result::Crossover& found = crossover();
  Json row = provenance_row(*placed->cell);
  row.update(
      {{"series", placed->series},
       {"kind", mark.kind},
       {"mark", hollow_words(mark.kind)},
       {"y", mark.length},
       {"low", low()},
       {"high", high()},
       {"said", result::crossover_text(found)},
       {"against", found.against},
       {"length",
        std::to_string(found.length_minimum) + " to " + std::to_string(found.length_maximum)},
       {"rounds", interval_words(found.interval, found.rounds.size(), found.disturbed_rounds())},
       {"scope_title", scope_of(*placed->cell)},
       {"group", group}});
  if (found.efficiency) {
    row.update({{"efficiency", std::to_string(std::lround(found.efficiency->length))}});
  }
  if (placed->x) row.update({{"size", *placed->x}});
  return row;
}

/// What stands where, and what cannot be drawn.
struct CrossoverMarks {
  std::vector<Marked> marks;
  std::vector<std::string> series;  ///< those drawn, in the panels' order
  std::vector<std::string> scopes;  ///< "scope mix", …
  std::vector<std::string> groups;  ///< "heads 4", …: what varies besides the scope
  std::set<double> sizes;
  std::vector<double> lengths;  ///< all that the axis of lengths has to hold
  std::string not_drawn;        ///< " Not drawn: …", of cells without a place; may be empty

  Json rows() const;
  bool has(const std::string& kind) const {
    return std::any_of(marks.begin(), marks.end(),
                       [&](const Marked& marked) { return kind == marked.mark.kind; });
  }
};

std::string place_of(const Panel& panel, const Placed& placed) {
  std::string text = placed.series;
  if (placed.x) text += " at " + text::human_value(*placed.x);
  const std::string group = group_of(panel);
  return text + " (" + scope_of(*placed.cell) + (group.empty() ? "" : ", " + group) + ")";
}

void add_cell(CrossoverMarks& contents, const Panel& panel, const Placed& placed) {
  const CellRecord& cell = *placed.cell;
  const bool found = result::is_ok(cell) && cell.crossover;
  const std::vector<Mark> marks = found ? marks_of(*cell.crossover) : std::vector<Mark>{};
  if (marks.empty()) {
    contents.not_drawn +=
        (contents.not_drawn.empty() ? " Not drawn: " : "; ") + place_of(panel, placed) + ": " +
        (found ? result::crossover_text(*cell.crossover) : std::string(to_string(cell.status)));
    return;
  }
  add_once(contents.series, placed.series);
  add_once(contents.scopes, scope_of(cell));
  for (const Mark& mark : marks) {
    const Marked marked{&placed, mark, group_of(panel)};
    contents.lengths.insert(contents.lengths.end(), {marked.low(), marked.high(), mark.length});
    contents.marks.push_back(marked);
  }
}

/// What has no size of its own is drawn at all of them; marks of one size stand a little apart.
Json CrossoverMarks::rows() const {
  Json rows = Json::array();
  const double middle = (static_cast<double>(series.size()) - 1) / 2;
  for (const Marked& marked : marks) {
    const auto found = std::find(series.begin(), series.end(), marked.placed->series);
    const double place = static_cast<double>(found - series.begin()) - middle;
    for (const double size : sizes) {
      if (marked.placed->x && *marked.placed->x != size) continue;
      rows.push_back(marked.row());
      rows.back().update({{"x", size * std::exp2(0.06 * place)}});
    }
  }
  return rows;
}

/// A layer of the marks of one kind.
Json crossover_layer(const char* kind, Json mark, Json encoding) {
  return {{"transform", Json::array({{{"filter", std::string("datum.kind == '") + kind + "'"}}})},
          {"mark", std::move(mark)},
          {"encoding", std::move(encoding)}};
}

Json hollow_legend(const Hollow& hollow) {
  const bool dashes = std::string_view(hollow.channel) == "strokeDash";
  const bool width = std::string_view(hollow.channel) == "strokeWidth";
  const Json shown = dashes ? Json::array({1, 0}) : width ? Json(2) : Json(1);
  return {{"field", "mark"},
          {"type", "nominal"},
          {"scale",
           {{"type", "ordinal"},  // by default a single width has no value
            {"domain", Json::array({hollow.words})},
            {"range", Json::array({shown})}}},
          {"legend",
           {{"title", nullptr},
            {"symbolType", hollow.shape},
            {"symbolFillColor", "transparent"},
            {"symbolStrokeColor", "#808080"},
            {"symbolStrokeWidth", 2},
            {"labelLimit", 320}}}};
}

Json crossover_layers(const CrossoverMarks& contents, const Palette& palette) {
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
  const Json range = with_field(y, "low");
  const Json fields = tooltip({{"series", "label"},
                               {"said", "faster from length"},
                               {"rounds", "interval"},
                               {"against", "compared with"},
                               {"efficiency", "efficiency length (CAB)"}});
  Json layers = Json::array();
  layers.push_back(crossover_layer("found", {{"type", "line"}, {"strokeWidth", 2}},
                                   {{"y", y}, {"opacity", legend_opacity(0.7)}}));
  layers.push_back(
      crossover_layer("found", {{"type", "rule"}, {"strokeWidth", 2}},
                      {{"y", range}, {"y2", {{"field", "high"}}}, {"opacity", legend_opacity(1)}}));
  for (const Hollow& hollow : hollows) {
    if (!contents.has(hollow.kind)) continue;
    const Json mark = {{"type", "point"},
                       {"filled", false},
                       {"shape", hollow.shape},
                       {"size", 90},
                       {"strokeWidth", 2}};
    layers.push_back(crossover_layer(hollow.kind, mark,
                                     {{"y", y},
                                      {hollow.channel, hollow_legend(hollow)},
                                      {"opacity", legend_opacity(1)},
                                      {"tooltip", fields}}));
  }
  Json points = crossover_layer("found", {{"type", "point"}, {"filled", true}, {"size", 55}},
                                {{"y", y},
                                 {"shape", shape_encoding(contents.series, palette)},
                                 {"opacity", legend_opacity(1)},
                                 {"tooltip", fields}});
  points.update({{"params", legend_selection()}});
  layers.push_back(std::move(points));
  return layers;
}

/// All cells in one, for what they share.
Panel joined_words(const std::vector<const Panel*>& panels) {
  Panel all = *panels.front();
  all.facet.clear();
  all.cells.clear();
  for (const Panel* panel : panels) {
    all.cells.insert(all.cells.end(), panel->cells.begin(), panel->cells.end());
  }
  return all;
}

/// "chunked against softmax/tiled: latte, linear; …": every pair that was compared, and for whom.
std::string sides_of(const std::vector<Marked>& marks) {
  std::map<std::string, std::set<std::string>> sides;
  for (const Marked& marked : marks) {
    sides[implementation_of(*marked.placed->cell) + " against " + marked.crossover().against]
        .insert(marked.placed->series);
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
std::string pass_of(const std::vector<Marked>& marks) {
  const auto pass_of_cell = [](const Marked& marked) {
    const auto pass = value_of(*marked.placed->cell, "pass");
    return pass ? text::human_value(*pass) : std::string("–");
  };
  const std::string pass = pass_of_cell(marks.front());
  const bool shared = std::all_of(marks.begin(), marks.end(), [&](const Marked& marked) {
    return pass_of_cell(marked) == pass;
  });
  return shared ? ", " + pass : "";
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
  return contents;
}

}  // namespace

std::optional<Figure> crossover_figure(const std::vector<const Panel*>& panels,
                                       const Palette& palette) {
  const CrossoverMarks contents = crossover_marks(panels);
  if (contents.marks.empty()) return std::nullopt;
  const Panel all = joined_words(panels);
  Figure figure;
  figure.name = file_name(all, "crossover");
  figure.title = "From which length on it is faster than the fastest exact attention";
  figure.group = all.task_label;
  figure.subtitle = shared_settings(all) + pass_of(contents.marks) +
                    ". Implementations: " + sides_of(contents.marks);
  figure.caption =
      "Size: latents, features, bases or projected length, by mechanism; what has none is drawn "
      "all "
      "across. Bars: the interval over rounds in fresh processes, each a search by paired times. "
      "Hollow "
      "triangles: the crossover lies beyond the lengths searched, or there is none, in the "
      "direction they point; hollow diamonds: the sign changes more than once." +
      contents.not_drawn + (contents.not_drawn.empty() ? "" : ".");
  const std::size_t columns = contents.scopes.size();
  const int width = columns == 1 ? 560 : columns == 2 ? 300 : 220;
  Json facet = {{"column", header("scope_title", contents.scopes)}};
  if (contents.groups.size() > 1) facet.update({{"row", header("group", contents.groups)}});
  figure.spec = bare_spec(figure, contents.rows());
  figure.spec.update(
      {{"usermeta", {{"fluid", true}}},  // the page fits the pictures' width to its own
       {"facet", facet},
       {"spec",
        {{"width", width},
         {"height", 300},
         {"encoding",
          {{"x", x_of(contents, all.axis)}, {"color", colour_encoding(contents.series, palette)}}},
         {"layer", crossover_layers(contents, palette)}}}});
  return figure;
}

}  // namespace attnbench::reports
