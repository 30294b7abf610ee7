#include "reports/training/frame.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text/format.hpp"
#include "reports/figures/legend.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"

namespace attnbench::reports {
namespace {

Json only(const char* kind) {
  return Json::array({{{"filter", std::string("datum.kind == '") + kind + "'"}}});
}

Json layer_of(const char* kind, Json mark, Json encoding) {
  return {{"transform", only(kind)}, {"mark", std::move(mark)}, {"encoding", std::move(encoding)}};
}

/// A front belongs to no series, and joins its points in steps.
Json front_layer(const Json& y) {
  return layer_of("front",
                  {{"type", "line"},
                   {"interpolate", "step-after"},
                   {"strokeDash", {4, 3}},
                   {"color", "#888888"}},
                  {{"y", y}, {"color", {{"value", "#888888"}}}});
}

/// Dotted and labelled, unlike a training.
void add_predicted(Json& layers, const Json& y) {
  const Json fields =
      Json::array({{{"field", "series"}, {"title", "label"}, {"type", "nominal"}},
                   {{"field", "said"}, {"title", "predicted"}, {"type", "nominal"}}});
  layers.push_back(layer_of("predicted",
                            {{"type", "line"}, {"strokeWidth", 2}, {"strokeDash", {1, 4}}},
                            {{"y", y},
                             {"detail", {{"field", "id"}}},
                             {"opacity", legend_opacity(1)},
                             {"tooltip", fields}}));
}

const char* const predicted_words = "one look-up into\na window, predicted";

/// The words, at the row that is nearest to a third: towards the middle of what `rows` span.
void add_predicted_label(Json& layers, const Json& rows, const Json& y) {
  const Json* best = nullptr;
  const auto off = [](const Json& row) { return std::abs(row["y"].get<double>() - 1.0 / 3); };
  for (const Json& row : rows) {
    if (row["kind"] == "predicted" && (!best || off(row) < off(*best))) best = &row;
  }
  if (!best) return;
  std::vector<double> across;
  for (const Json& row : rows) {
    if (row.contains("x") && row["x"].is_number()) across.push_back(row["x"]);
  }
  const auto [least, most] = std::minmax_element(across.begin(), across.end());
  const bool at_left = best->contains("x") && (*best)["x"].is_number() &&
                       (*best)["x"].get<double>() < std::sqrt(*least * *most);
  Json row = *best;
  row["words"] = predicted_words;
  layers.push_back({{"data", {{"values", Json::array({row})}}},
                    {"mark",
                     {{"type", "text"},
                      {"align", at_left ? "left" : "right"},
                      {"dx", at_left ? 8 : -8},
                      {"dy", at_left ? 12 : 0},
                      {"fontSize", 10},
                      {"lineBreak", "\n"}}},
                    {"encoding",
                     {{"y", y},
                      {"text", {{"field", "words"}, {"type", "nominal"}}},
                      {"opacity", legend_opacity(1)}}}});
}

/// Grey for those from `first` on: none of the colours is theirs.
void make_grey(Json& colour, std::size_t first) {
  Json& range = colour["scale"]["range"];
  for (std::size_t i = first; i < range.size(); ++i) range[i] = "#888888";
}

/// Hollow and dashed, under names of their own where we have no such model.
void add_published(Json& layers, const std::vector<Published>& published, const Json& y,
                   const Json& shape, const std::function<std::string(const std::string&)>& name) {
  if (published.empty()) return;
  Json rows = Json::array();
  for (const Published& number : published) {
    rows.push_back({{"x", number.x},
                    {"y", number.y},
                    {"series", name(number.label)},
                    {"said", share_words(number.y)},
                    {"source", number.source}});
  }
  const Json data = {{"name", "published"}, {"values", rows}};
  const Json fields =
      Json::array({{{"field", "series"}, {"title", "label"}, {"type", "nominal"}},
                   {{"field", "said"}, {"title", "published"}, {"type", "nominal"}},
                   {{"field", "source"}, {"title", "source"}, {"type", "nominal"}}});
  layers.push_back({{"data", data},
                    {"mark", {{"type", "line"}, {"strokeDash", {5, 4}}, {"strokeWidth", 1}}},
                    {"encoding", {{"y", y}, {"opacity", legend_opacity(0.6)}}}});
  layers.push_back(
      {{"data", data},
       {"mark", {{"type", "point"}, {"filled", false}, {"size", 60}}},
       {"encoding",
        {{"y", y}, {"shape", shape}, {"opacity", legend_opacity(1)}, {"tooltip", fields}}}});
}

std::string sources_of(const std::vector<Published>& published) {
  std::string text;
  for (const Published& number : published) {
    if (number.source.empty() || text.find(number.source) != std::string::npos) continue;
    text += (text.empty() ? " of " : "; ") + number.source;
  }
  return text;
}

std::size_t failures_in(const result::Panel& panel) {
  std::size_t failed = 0;
  for (const result::Placed& placed : panel.cells) failed += (*placed.cell)["status"] != "ok";
  return failed;
}

using result::Panel;
using result::Placed;

/// Whether a setting makes the model another one rather than the data.
bool is_of_model(const std::string& setting) {
  return setting == "width" || setting == "heads" || setting == "head_dim";
}

bool tells_data_apart(const Panel& panel) {
  const bool several = result::axis_values(panel).size() > 1;
  const bool option = !panel.cells.front().cell->at("settings").contains(panel.axis);
  return several && !option && !is_of_model(panel.axis);
}

}  // namespace

const char* const chosen_words =
    "Dots: every seed, at the learning rate with the best mean validation accuracy.";

Json logarithmic(const char* title, double base, const char* format) {
  return {{"field", "x"},
          {"type", "quantitative"},
          {"title", title},
          {"scale", {{"type", "log"}, {"base", base}, {"nice", false}, {"padding", 16}}},
          {"axis", {{"format", format}, {"grid", false}, {"labelOverlap", "greedy"}}}};
}

std::optional<Figure> sketched(const result::Panel& own, const std::vector<std::string>& own_order,
                               Sketch sketch) {
  if (sketch.rows.empty()) return std::nullopt;
  const std::set<std::string> trained = series_of(sketch.rows);
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto name_of = [&](const std::string& label) {
    return has(own.series, label) ? label : label + " (published)";
  };
  std::set<std::string> shown = trained;
  for (const Published& number : sketch.published) shown.insert(name_of(number.label));
  result::Panel panel = with_series(own, shown);
  const std::size_t ours = panel.series.size();
  // Published models that we do not have come after ours in the legend.
  std::vector<std::string> order = own_order;
  for (const Published& number : sketch.published) {
    const std::string name = name_of(number.label);
    if (!has(panel.series, name)) panel.series.push_back(name);
    if (!has(order, name)) order.push_back(name);
  }
  Json y = {{"field", "y"}, {"type", "quantitative"}, {"title", sketch.y}};
  y.update(sketch.y_encoding);
  Json layers = std::move(sketch.layers);
  if (any_of_kind(sketch.rows, "front")) layers.push_back(front_layer(y));
  if (any_of_kind(sketch.rows, "chance")) {
    layers.push_back(layer_of("chance", {{"type", "tick"}, {"thickness", 2}, {"size", 28}},
                              {{"y", y}, {"color", {{"value", "#888888"}}}}));
  }
  if (any_of_kind(sketch.rows, "mean")) {
    layers.push_back(
        layer_of("mean", {{"type", "line"}, {"strokeWidth", 2}},
                 {{"y", y}, {"detail", {{"field", "id"}}}, {"opacity", legend_opacity(0.9)}}));
  }
  if (any_of_kind(sketch.rows, "predicted")) {
    add_predicted(layers, y);
    add_predicted_label(layers, sketch.rows, y);
  }
  const Json shape = shape_encoding(panel.series, order);
  add_published(layers, sketch.published, y, shape, name_of);
  Json fields = tooltip(sketch.columns);
  if (any_of_kind(sketch.rows, "reach")) {
    layers.push_back(layer_of(
        "reach", {{"type", "point"}, {"filled", false}, {"shape", "diamond"}, {"size", 160}},
        {{"y", y}, {"opacity", legend_opacity(1)}}));
  }
  Json dots =
      layer_of("dot", {{"type", "point"}, {"filled", true}, {"size", 50}},
               {{"y", y}, {"opacity", legend_opacity(0.9)}, {"shape", shape}, {"tooltip", fields}});
  dots["params"] = legend_selection();
  layers.push_back(std::move(dots));
  const std::size_t failed = failures_in(panel);
  if (failed > 0) {
    sketch.caption += " " + std::to_string(failed) +
                      (failed == 1 ? " training did not end well and is"
                                   : " trainings did not end well and are") +
                      " not drawn: see the table of statuses.";
  }
  sketch.caption += not_drawn_words(own, trained);
  if (!sketch.published.empty()) {
    sketch.caption += " Hollow and dashed: published numbers" + sources_of(sketch.published) + ".";
  }
  Figure figure = framed(panel, sketch.what, sketch.title, sketch.caption, order, Json::array());
  figure.spec["data"] = {{"name", "measured"}, {"values", std::move(sketch.rows)}};
  figure.spec["layer"] = std::move(layers);
  figure.spec["encoding"]["x"] = std::move(sketch.x);
  make_grey(figure.spec["encoding"]["color"], ours);
  figure.spec.erase("resolve");
  return figure;
}

std::vector<std::pair<std::string, std::string>> data_of(const Panel& panel, const Json* x) {
  std::vector<std::pair<std::string, std::string>> data;
  for (const auto& setting : panel.facet) {
    if (!is_of_model(setting.first)) data.push_back(setting);
  }
  if (x && tells_data_apart(panel)) data.emplace_back(panel.axis, result::human_value(*x));
  return data;
}

std::vector<Panel> by_data(const Panel& panel) {
  if (!tells_data_apart(panel)) return {panel};
  std::vector<Panel> parts;
  std::map<std::string, std::size_t> place;
  for (const Placed& placed : panel.cells) {
    const std::string value = placed.x ? result::human_value(*placed.x) : "none";
    const auto [at, is_new] = place.emplace(value, parts.size());
    if (is_new) {
      parts.push_back(panel);
      parts.back().facet.emplace_back(panel.axis, value);
      parts.back().cells.clear();
      parts.back().series.clear();
    }
    Panel& part = parts[at->second];
    part.cells.push_back(placed);
    auto& series = part.series;
    if (std::find(series.begin(), series.end(), placed.series) == series.end()) {
      series.push_back(placed.series);
    }
  }
  return parts;
}

}  // namespace attnbench::reports
