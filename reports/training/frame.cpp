#include "reports/training/frame.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/text/format.hpp"
#include "reports/figures/legend.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"
#include "reports/figures/ticks.hpp"
#include "reports/training/labels.hpp"

namespace attnbench::reports {
namespace {

Json only(const char* kind) {
  return Json::array({{{"filter", std::string("datum.kind == '") + kind + "'"}}});
}

Json training_layer(const char* kind, Json mark, Json encoding) {
  return {{"transform", only(kind)}, {"mark", std::move(mark)}, {"encoding", std::move(encoding)}};
}

/// A front belongs to no series, and joins its points in steps.
Json front_layer(const Json& y) {
  return training_layer("front",
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
  layers.push_back(training_layer("predicted",
                                  {{"type", "line"}, {"strokeWidth", 2}, {"strokeDash", {1, 4}}},
                                  {{"y", y},
                                   {"detail", {{"field", "id"}}},
                                   {"opacity", legend_opacity(1)},
                                   {"tooltip", fields}}));
}

/// Under names of their own where we have no such model.
Json published_training_rows(const Sketch& sketch, const Panel& panel) {
  Json rows = Json::array();
  for (const Published& number : sketch.published) {
    const std::string name = published_name(panel, number.label);
    rows.push_back({{"x", sketch.published_by_name ? Json(name) : Json(number.x)},
                    {"y", number.y},
                    {"series", name},
                    {"said", share_words(number.y)},
                    {"source", number.source}});
  }
  return rows;
}

std::string sources_of(const std::vector<Published>& published) {
  std::string text;
  for (const Published& number : published) {
    if (number.source.empty() || text.find(number.source) != std::string::npos) continue;
    text += (text.empty() ? " of " : "; ") + number.source;
  }
  return text;
}

/// Ticks of a logarithmic x that has none of its own.
void add_ticks(Json& x, const TrainingRows& rows, const std::vector<Published>& published) {
  if (!x.contains("axis") || x["axis"].contains("values") || !x.contains("scale")) return;
  if (x["scale"].value("type", "") != "log") return;
  std::vector<double> values;
  for (const TrainingRow& row : rows) {
    if (row.x.is_number() && row.x.get<double>() > 0) values.push_back(row.x.get<double>());
  }
  for (const Published& number : published) values.push_back(number.x);
  if (values.empty()) return;
  x["axis"]["values"] = x["scale"]["base"] == 2 ? powers_of_two(values) : decade_ticks(values);
}

std::size_t failures_in(const Panel& panel) {
  std::size_t failed = 0;
  for (const Placed& placed : panel.cells) failed += !result::is_ok(*placed.cell);
  return failed;
}

/// Whether a setting makes the model another one rather than the data.
bool is_of_model(const std::string& setting) {
  return setting == "width" || setting == "heads" || setting == "head_dim";
}

bool tells_data_apart(const Panel& panel) {
  const bool several = axis_values(panel).size() > 1;
  const bool option = !panel.cells.front().cell->settings.contains(panel.axis);
  return several && !option && !is_of_model(panel.axis);
}

}  // namespace

std::string chosen_words(const Quality& quality) {
  return std::string("Dots: every seed, at the learning rate with the ") + quality.selected + ".";
}

Json quality_encoding(const Quality& quality) {
  if (!quality.less_is_better) return Sketch{}.y_encoding;
  return {{"scale", {{"zero", false}, {"nice", true}, {"padding", 8}}},
          {"axis", {{"format", ".2f"}}}};
}

Json logarithmic(const char* title, double base, const char* format) {
  return {{"field", "x"},
          {"type", "quantitative"},
          {"title", title},
          {"scale", {{"type", "log"}, {"base", base}, {"nice", false}, {"padding", 16}}},
          {"axis", {{"format", format}, {"grid", false}, {"labelOverlap", "greedy"}}}};
}

std::string published_name(const Panel& panel, const std::string& label) {
  const auto& series = panel.series;
  const bool ours = std::find(series.begin(), series.end(), label) != series.end();
  return ours ? label : label + " (published)";
}

std::vector<std::string> published_last(const Panel& panel,
                                        const std::vector<Published>& published) {
  std::vector<std::string> names = panel.series;
  for (const Published& number : published) {
    const std::string name = published_name(panel, number.label);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::optional<Figure> sketched(const Panel& own, const Palette& own_palette, Sketch sketch) {
  if (sketch.rows.empty()) return std::nullopt;
  std::set<std::string> trained;
  for (const TrainingRow& row : sketch.rows) {
    if (!row.series.empty()) trained.insert(row.series);
  }
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::set<std::string> shown = trained;
  for (const Published& number : sketch.published) {
    shown.insert(published_name(own, number.label));
  }
  Panel panel = with_series(own, shown);
  if (sketch.by_family) panel.series = own_palette.by_family(std::move(panel.series));
  const std::size_t ours = panel.series.size();
  // Published models that we do not have come after ours in the legend.
  Palette palette = own_palette;
  for (const Published& number : sketch.published) {
    const std::string name = published_name(own, number.label);
    if (!has(panel.series, name)) panel.series.push_back(name);
    palette.add(name, name);
  }
  Json y = {{"field", "y"}, {"type", "quantitative"}, {"title", sketch.y}};
  y.update(sketch.y_encoding);
  add_ticks(sketch.x, sketch.rows, sketch.published);
  Json layers = std::move(sketch.layers);
  if (any_of_kind(sketch.rows, "front")) layers.push_back(front_layer(y));
  if (any_of_kind(sketch.rows, "chance")) {
    layers.push_back(training_layer("chance", {{"type", "tick"}, {"thickness", 2}, {"size", 28}},
                                    {{"y", y}, {"color", {{"value", "#888888"}}}}));
  }
  if (any_of_kind(sketch.rows, "mean")) {
    Json encoding = {{"y", y}, {"detail", {{"field", "id"}}}, {"opacity", legend_opacity(0.9)}};
    if (Json dash = dash_encoding(panel.series, palette); !dash.is_null()) {
      encoding["strokeDash"] = std::move(dash);
    }
    layers.push_back(training_layer("mean", {{"type", "line"}, {"strokeWidth", 2}}, encoding));
  }
  if (any_of_kind(sketch.rows, "predicted")) add_predicted(layers, y);
  if (Json words = label_layer(sketch, layers, y); !words.is_null()) {
    layers.push_back(std::move(words));
  }
  const Json shape = shape_encoding(panel.series, palette);
  add_published(layers, published_training_rows(sketch, own), y,
                {.width = 1,
                 .opacity = 0.6,
                 .joined = !sketch.published_by_name,
                 .shape = shape,
                 .has_source = true});
  Json fields = tooltip(sketch.columns);
  if (any_of_kind(sketch.rows, "reach")) {
    layers.push_back(training_layer(
        "reach", {{"type", "point"}, {"filled", false}, {"shape", "diamond"}, {"size", 160}},
        {{"y", y}, {"opacity", legend_opacity(1)}}));
  }
  Json dots = training_layer(
      "dot", {{"type", "point"}, {"filled", true}, {"size", 50}},
      {{"y", y}, {"opacity", legend_opacity(0.9)}, {"shape", shape}, {"tooltip", fields}});
  dots.update({{"params", legend_selection()}});
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
    sketch.caption += sketch.published_by_name ? " Hollow: published numbers"
                                               : " Hollow and dashed: published numbers";
    sketch.caption += sources_of(sketch.published) + ".";
  }
  Framing& framing = sketch;
  framing.grouping = Grouping::flat;
  framing.grey_from = ours;  // published models of which we have none
  framing.rows = to_json(sketch.rows);
  framing.layers = std::move(layers);
  return framed(std::move(framing), panel, palette);
}

std::vector<std::pair<std::string, std::string>> data_of(const Panel& panel,
                                                         const std::optional<Json>& x) {
  std::vector<std::pair<std::string, std::string>> data;
  for (const auto& setting : panel.facet) {
    if (!is_of_model(setting.first)) data.push_back(setting);
  }
  if (x && tells_data_apart(panel)) data.emplace_back(panel.axis, text::human_value(*x));
  return data;
}

std::vector<Panel> by_data(const Panel& panel) {
  if (!tells_data_apart(panel)) return {panel};
  std::vector<Panel> parts;
  std::map<std::string, std::size_t> place;
  for (const Placed& placed : panel.cells) {
    const std::string value = placed.x ? text::human_value(*placed.x) : "none";
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
