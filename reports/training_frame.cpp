#include "reports/training_frame.hpp"

#include <array>
#include <cstdio>

#include "harness/result/format.hpp"
#include "reports/points.hpp"
#include "reports/spec.hpp"

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

std::size_t failures_in(const result::Panel& panel) {
  std::size_t failed = 0;
  for (const result::Placed& placed : panel.cells) failed += (*placed.cell)["status"] != "ok";
  return failed;
}

}  // namespace

bool any_of_kind(const Json& rows, const std::string& kind) {
  for (const Json& row : rows) {
    if (row["kind"] == kind) return true;
  }
  return false;
}

std::vector<std::pair<std::string, std::string>> told_of(const char* what) {
  return {{"series", "label"},
          {"said", what},
          {"rate", "learning rate"},
          {"seed", "seed"},
          {"ended", "training"}};
}

std::string share_words(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", share);
  return text.data();
}

double metric(const Json& cell, const char* name) {
  const Json& metrics = cell["metrics"];
  return metrics.contains(name) && metrics[name].is_number() ? metrics[name].get<double>() : 0;
}

Json row_of(const Json& cell, const std::string& series, const char* kind, const Json& x,
            double y) {
  Json row = provenance_row(cell);
  const auto text = [&](const char* key) {
    const Json* value = result::value_of(cell, key);
    return value ? result::human_value(*value) : std::string("–");
  };
  row.update(
      {{"kind", kind},
       {"series", series},
       {"x", x},
       {"y", y},
       {"said", share_words(y)},
       {"seed", text(result::model_seed)},
       {"rate", text(result::learning_rate)},
       {"ended", cell["training"].value("converged", false) ? "converged" : "still growing"}});
  return row;
}

Json mean_row(const std::string& series, const Json& x, double y) {
  return {{"kind", "mean"}, {"series", series}, {"x", x}, {"y", y}, {"id", series}};
}

Json level_line(double y, const std::string& what) {
  const Json values = Json::array({{{"y", y}, {"what", what}}});
  const Json place = {{"field", "y"}, {"type", "quantitative"}};
  const Json grey = {{"value", "#888888"}};
  const Json line = {
      {"mark", {{"type", "rule"}, {"strokeDash", {2, 3}}}},
      {"encoding",
       {{"y", place}, {"x", {{"value", 0}}}, {"x2", {{"value", "width"}}}, {"color", grey}}}};
  const Json words = {
      {"mark", {{"type", "text"}, {"align", "right"}, {"dy", -5}, {"fontSize", 10}}},
      {"encoding",
       {{"y", place},
        {"x", {{"value", "width"}}},
        {"text", {{"field", "what"}}},
        {"color", grey}}}};
  return {{"data", {{"values", values}}}, {"layer", {line, words}}};
}

std::optional<Figure> sketched(const result::Panel& panel, const std::vector<std::string>& order,
                               Sketch sketch) {
  if (sketch.rows.empty()) return std::nullopt;
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
  Json told = tooltip(sketch.told);
  if (any_of_kind(sketch.rows, "reach")) {
    layers.push_back(layer_of(
        "reach", {{"type", "point"}, {"filled", false}, {"shape", "diamond"}, {"size", 160}},
        {{"y", y}, {"opacity", legend_opacity(1)}}));
  }
  Json dots = layer_of("dot", {{"type", "point"}, {"filled", true}, {"size", 50}},
                       {{"y", y},
                        {"opacity", legend_opacity(0.9)},
                        {"shape", shape_encoding(panel.series, order)},
                        {"tooltip", told}});
  dots["params"] = legend_selection();
  layers.push_back(std::move(dots));
  const std::size_t failed = failures_in(panel);
  if (failed > 0) {
    sketch.caption += " " + std::to_string(failed) +
                      (failed == 1 ? " training did" : " trainings did") +
                      " not end well and is not drawn: see the table of statuses.";
  }
  Figure figure = framed(panel, sketch.what, sketch.title, sketch.caption, order, Json::array());
  figure.spec["data"] = {{"name", "measured"}, {"values", std::move(sketch.rows)}};
  figure.spec["layer"] = std::move(layers);
  figure.spec["encoding"]["x"] = std::move(sketch.x);
  figure.spec.erase("resolve");
  return figure;
}

}  // namespace attnbench::reports
