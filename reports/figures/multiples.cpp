#include "reports/figures/kinds.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/text/format.hpp"

namespace attnbench::reports {
namespace {

constexpr int facet_columns = 3;
constexpr int facet_width = 190;
constexpr int facet_height = 140;

/// Rows of the one data set that facets divide; `part` tells those of a layer's own from the rest.
class Parts {
 public:
  explicit Parts(Json rows) : rows_(std::move(rows)) {}

  /// Adds the rows of a layer's own data, once, and returns their part. Empty where some belong to
  /// no series: then the layer keeps its data and is the same in all facets.
  std::string add(const Json& data) {
    const Json& own = data["values"];
    const bool of_series =
        std::all_of(own.begin(), own.end(), [](const Json& row) { return row.contains("series"); });
    if (!of_series) return "";
    const auto found = std::find(known_.begin(), known_.end(), data);
    const std::string part = "part " + std::to_string(found - known_.begin() + 1);
    if (found != known_.end()) return part;
    known_.push_back(data);
    for (Json row : own) {
      row["part"] = part;
      rows_.push_back(std::move(row));
    }
    return part;
  }
  const Json& rows() const { return rows_; }

 private:
  Json rows_;
  std::vector<Json> known_;
};

/// What a line of the figure joins: all that is not a mark by itself.
bool is_on_line(const Json& row) {
  if (row.value("disturbed", false) || row.value("zero", false)) return false;
  return row.value("kind", "mean") == "mean";
}

/// The lines of the background of each facet: of `series`, or of all others. They are named by
/// "line" rather than "series", by which facets divide.
Json background_rows(const Json& rows, const std::set<std::string>& series, bool others) {
  Json lines = Json::array();
  for (const Json& row : rows) {
    if (!is_on_line(row) || others == series.contains(row["series"].get<std::string>())) continue;
    // Rows of trainings say which of a series' lines they are on.
    const Json& line = row.contains("kind") ? row["id"] : row["series"];
    lines.push_back({{"x", row["x"]}, {"y", row["y"]}, {"line", line}});
  }
  return lines;
}

/// The encoding of opacity where nothing is selected.
Json unselected(const Json& opacity) {
  if (!opacity.contains("condition")) return opacity;
  const Json& condition = opacity["condition"];
  if (condition.is_object()) return {{"value", condition["value"]}};
  Json rest = Json::array();
  Json otherwise;
  for (const Json& one : condition) {
    if (one.contains("param")) {
      otherwise = one["value"];
      continue;
    }
    for (const Json& test : one["test"]["and"]) {
      if (test.is_string()) rest.push_back({{"test", test}, {"value", one["value"]}});
    }
  }
  return {{"condition", rest}, {"value", otherwise}};
}

void add_filter(Json& layer, const std::string& filter) {
  if (!layer.contains("transform")) layer["transform"] = Json::array();
  layer["transform"].push_back({{"filter", filter}});
}

/// The layers of all groups in one list, with their group's data. Scales of one group's own are not
/// known to Vega-Lite inside of a facet.
void flatten(const Json& group, Json& flat) {
  for (Json layer : group["layer"]) {
    if (group.contains("data") && !layer.contains("data")) layer["data"] = group["data"];
    if (layer.contains("layer")) {
      flatten(layer, flat);
    } else {
      flat.push_back(std::move(layer));
    }
  }
}

/// A title that a small facet is not high enough for, as several lines.
void wrap_title(Json& title) {
  constexpr std::size_t letters = 22;
  if (!title.is_string() || text::display_width(title.get<std::string>()) <= letters) return;
  title = text::wrap(title.get<std::string>(), letters);
}

void adapt(Json& layer, Parts& parts) {
  layer.erase("params");
  if (layer.contains("data")) {
    const std::string part = parts.add(layer["data"]);
    if (!part.empty()) {
      layer.erase("data");
      add_filter(layer, "datum.part == '" + part + "'");
    }
  } else {
    add_filter(layer, "!datum.part");
  }
  Json& encoding = layer["encoding"];
  if (encoding.contains("y") && encoding["y"].contains("title")) wrap_title(encoding["y"]["title"]);
  if (encoding.contains("opacity")) encoding["opacity"] = unselected(encoding["opacity"]);
  if (encoding.contains("shape") && encoding["shape"].value("field", "") == "series") {
    encoding["shape"]["legend"] = nullptr;
  }
  // A mark of a failure stood by a scale of its own, as many above each other as series failed.
  if (encoding.contains("y") && encoding["y"].value("field", "") == "slot") {
    encoding["y"] = {{"value", 6}};
  }
}

/// Lines of one look, the same in every facet; a single place is a point.
Json background(const std::string& name, Json rows, const Json& y, Json mark,
                const std::string& colour) {
  const bool is_line = std::any_of(rows.begin(), rows.end(),
                                   [&](const Json& row) { return row["x"] != rows.front()["x"]; });
  if (is_line) {
    mark["type"] = "line";
  } else {
    mark = {{"type", "point"}, {"filled", true}, {"size", 20}, {"opacity", mark["opacity"]}};
  }
  return {{"data", {{"name", name}, {"values", std::move(rows)}}},
          {"mark", std::move(mark)},
          {"encoding",
           {{"y", y},
            {"detail", {{"field", "line"}, {"type", "nominal"}}},
            {"color", {{"value", colour}}}}}};
}

/// Beneath all layers: the others grey, exact attention in its colour, so that each facet shows
/// what its line is held to.
void add_backgrounds(Json& layers, const Json& rows, const Panel& panel, const Palette& palette) {
  const auto drawn = std::find_if(layers.begin(), layers.end(), [](const Json& layer) {
    return !layer.contains("data") && layer["encoding"].contains("y") &&
           layer["encoding"]["y"].contains("field");
  });
  if (drawn == layers.end()) return;
  Json y = (*drawn)["encoding"]["y"];
  y["field"] = "y";
  const std::set<std::string> exact = exact_series(panel);
  Json beneath = Json::array();
  if (Json others = background_rows(rows, exact, true); !others.empty()) {
    beneath.push_back(background("others", std::move(others), y,
                                 {{"strokeWidth", 1}, {"opacity", 0.35}}, "#888888"));
  }
  for (const std::string& series : exact) {
    Json own = background_rows(rows, {series}, false);
    if (own.empty()) continue;
    const Look& look = palette.of(series);
    Json mark = {{"strokeWidth", 1.25}, {"opacity", 0.8}};
    if (!look.dash.empty()) mark["strokeDash"] = look.dash;
    beneath.push_back(background("exact " + std::to_string(beneath.size()), std::move(own), y,
                                 std::move(mark), look.colour));
  }
  beneath.insert(beneath.end(), layers.begin(), layers.end());
  layers = std::move(beneath);
}

}  // namespace

std::set<std::string> exact_series(const Panel& panel) {
  std::set<std::string> exact;
  for (const Placed& placed : panel.cells) {
    if (is_exact(*placed.cell)) exact.insert(placed.series);
  }
  if (exact.size() == panel.series.size()) return {};
  return exact;
}

Json small_multiples(Json spec, const Panel& panel, const Palette& palette) {
  Parts parts(spec["data"]["values"]);
  Json layers = Json::array();
  flatten({{"layer", spec["layer"]}}, layers);
  for (Json& layer : layers) adapt(layer, parts);
  add_backgrounds(layers, spec["data"]["values"], panel, palette);
  Json encoding = std::move(spec["encoding"]);
  if (encoding.contains("color")) encoding["color"]["legend"] = nullptr;
  Json unit = {{"width", facet_width},
               {"height", facet_height},
               {"encoding", std::move(encoding)},
               {"layer", std::move(layers)}};
  return {{"$schema", spec["$schema"]},
          {"title", spec["title"]},
          {"usermeta", {{"fluid", true}}},  // the page fits the pictures' width to its own
          {"data", {{"name", "measured"}, {"values", parts.rows()}}},
          {"facet",
           {{"field", "series"},
            {"type", "nominal"},
            {"title", nullptr},
            {"sort", panel.series},
            {"header", {{"labelFontSize", 12}, {"labelAnchor", "start"}, {"labelLimit", 220}}}}},
          {"columns", facet_columns},
          {"spec", std::move(unit)},
          {"config", spec["config"]}};
}

}  // namespace attnbench::reports
