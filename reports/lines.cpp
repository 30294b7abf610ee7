#include "reports/lines.hpp"

#include <algorithm>

#include "harness/result/format.hpp"
#include "reports/spec.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Placed;

struct Point {
  const Placed* placed;
  Measured measured;
};

std::vector<Point> points_of(const Panel& panel, const Quantity& quantity) {
  std::vector<Point> points;
  for (const Placed& placed : panel.cells) {
    if (const auto measured = quantity(*placed.cell)) points.push_back({&placed, *measured});
  }
  return points;
}

/// The least positive value of all, a third of it: where a logarithmic axis shows what is 0.
double foot_of(const std::vector<Point>& points) {
  double least = 0;
  for (const Point& point : points) {
    const double value = point.measured.value;
    if (value > 0 && (least == 0 || value < least)) least = value;
  }
  return least > 0 ? least / 3 : 1;
}

Json row_of(const Point& point, const Json& x, const LineRequest& request, double factor,
            double foot) {
  Json row = provenance_row(*point.placed->cell);
  const Measured& measured = point.measured;
  const bool grounded = foot > 0 && measured.value <= 0;
  row["x"] = x;
  row["series"] = point.placed->series;
  row["y"] = (grounded ? foot : measured.value) * factor;
  row["low"] = (grounded ? foot : measured.low) * factor;
  row["high"] = (grounded ? foot : measured.high) * factor;
  row["zero"] = grounded;
  row["said"] = request.words(measured.value);
  if (!measured.interval.empty()) {
    row["between"] = request.words(measured.low) + " to " + request.words(measured.high) + " (" +
                     measured.interval + ")";
  }
  return row;
}

Json published_rows(const LineRequest& request, double factor) {
  Json rows = Json::array();
  for (const Published& number : request.published) {
    rows.push_back({{"x", number.x},
                    {"y", number.y * factor},
                    {"series", number.label},
                    {"said", request.words(number.y)}});
  }
  return rows;
}

/// Dashed and hollow: never to be taken for a measurement of ours.
void add_published(Json& layers, const Json& rows, const Json& y) {
  if (rows.empty()) return;
  const Json data = {{"name", "published"}, {"values", rows}};
  const Json told = Json::array({{{"field", "series"}, {"title", "label"}, {"type", "nominal"}},
                                 {{"field", "said"}, {"title", "published"}, {"type", "nominal"}}});
  layers.push_back({{"data", data},
                    {"mark", {{"type", "line"}, {"strokeDash", {5, 4}}, {"strokeWidth", 1.5}}},
                    {"encoding", {{"y", y}, {"opacity", legend_opacity(0.8)}}}});
  layers.push_back(
      {{"data", data},
       {"mark", {{"type", "point"}, {"filled", false}, {"size", 60}, {"strokeDash", {2, 2}}}},
       {"encoding", {{"y", y}, {"opacity", legend_opacity(1)}, {"tooltip", told}}}});
}

Json layers_of(const Panel& panel, const std::vector<std::string>& order, const Json& y,
               bool bounds) {
  const Json shape = shape_encoding(panel.series, order);
  const Json low = {{"field", "low"}, {"type", "quantitative"}, {"title", y["title"]}};
  Json layers = Json::array();
  Json range = low;
  for (const char* part : {"scale", "axis"}) range[part] = y[part];
  if (bounds) {
    for (const char* mark : {"area", "rule"}) {
      layers.push_back({{"mark", {{"type", mark}}},
                        {"encoding",
                         {{"y", range},
                          {"y2", {{"field", "high"}}},
                          {"opacity", legend_opacity(mark == std::string("area") ? 0.15 : 1)}}}});
    }
  }
  layers.push_back({{"mark", {{"type", "line"}, {"strokeWidth", 2}}},
                    {"encoding", {{"y", y}, {"opacity", legend_opacity(1)}}}});
  std::vector<std::pair<std::string, std::string>> own{{"series", "label"}, {"said", "value"}};
  if (bounds) own = {{"series", "label"}, {"said", "median"}, {"between", "interval"}};
  layers.push_back(
      {{"transform", Json::array({{{"filter", "!datum.zero"}}})},
       {"params", legend_selection()},
       {"mark", {{"type", "point"}, {"filled", true}, {"size", 55}}},
       {"encoding",
        {{"y", y}, {"shape", shape}, {"opacity", legend_opacity(1)}, {"tooltip", tooltip(own)}}}});
  layers.push_back(
      {{"transform", Json::array({{{"filter", "datum.zero"}}})},
       {"mark", {{"type", "point"}, {"filled", false}, {"size", 70}, {"shape", "triangle-down"}}},
       {"encoding", {{"y", y}, {"opacity", legend_opacity(1)}, {"tooltip", tooltip(own)}}}});
  return layers;
}

}  // namespace

std::optional<Figure> line_figure(const Panel& panel, const std::vector<std::string>& order,
                                  const LineRequest& request) {
  const std::vector<Point> points = points_of(panel, request.quantity);
  if (points.empty()) return std::nullopt;
  std::vector<double> values;
  for (const Point& point : points) values.push_back(point.measured.value);
  const Scale scale = request.scale(values);
  const double foot = is_logarithmic(panel) ? foot_of(points) : 0;
  Json rows = Json::array();
  bool bounds = false;
  bool grounded = false;
  bool spread = false;
  for (const Point& point : points) {
    bounds = bounds || !point.measured.interval.empty();
    spread = spread || !point.placed->x;
    for (const Json& x : places(panel, *point.placed)) {
      rows.push_back(row_of(point, x, request, scale.factor, foot));
      grounded = grounded || rows.back()["zero"].get<bool>();
    }
  }
  const Json y = y_encoding(panel, request.axis + " (" + scale.unit + ")");
  Json layers = layers_of(panel, order, y, bounds);
  const Json published = published_rows(request, scale.factor);
  add_published(layers, published, y);
  std::string caption = request.caption;
  if (!published.empty()) caption += " Hollow and dashed: published numbers.";
  if (grounded) caption += " Hollow triangles at the foot: exactly 0.";
  if (spread) caption += " What does not have " + panel.axis + " is one value, drawn across.";
  Figure figure = framed(panel, request.what, request.title, caption, order, std::move(layers));
  figure.spec["data"] = {{"name", "measured"}, {"values", rows}};
  return figure;
}

}  // namespace attnbench::reports
