#include "reports/figures/crossover.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/figures/crossover_marks.hpp"
#include "reports/figures/frame.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;

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
  const Json told = tooltip({{"series", "label"},
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
        layer_of(kind, mark, {{"y", y}, {"opacity", legend_opacity(1)}, {"tooltip", told}}));
  }
  Json points = layer_of("found", {{"type", "point"}, {"filled", true}, {"size", 55}},
                         {{"y", y},
                          {"shape", shape_encoding(contents.series, order)},
                          {"opacity", legend_opacity(1)},
                          {"tooltip", told}});
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
