#include "reports/lines.hpp"

#include <algorithm>

#include "harness/result/format.hpp"
#include "reports/drawn.hpp"
#include "reports/failures.hpp"
#include "reports/frame.hpp"
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
  layers.push_back({{"data", data},
                    {"mark", {{"type", "point"}, {"filled", false}, {"size", 60}}},
                    {"encoding", {{"y", y}, {"opacity", legend_opacity(1)}, {"tooltip", told}}}});
}

/// The data of a figure, and what is in it: an empty layer would make Vega warn.
struct Contents {
  Json rows = Json::array();
  bool bounds = false;  ///< any value has an interval
  bool zeros = false;   ///< any value stands at the foot of a logarithmic axis
  bool others = false;  ///< any value does not
  bool across = false;  ///< any cell without the axis' option is drawn at all its values
};

Contents contents_of(const Panel& panel, const std::vector<Point>& points,
                     const LineRequest& request, double factor) {
  const double foot = is_logarithmic(panel) ? foot_of(points) : 0;
  Contents contents;
  for (const Point& point : points) {
    contents.bounds = contents.bounds || !point.measured.interval.empty();
    contents.across = contents.across || !point.placed->x;
    for (const Json& x : places(panel, *point.placed)) {
      contents.rows.push_back(row_of(point, x, request, factor, foot));
      (contents.rows.back()["zero"].get<bool>() ? contents.zeros : contents.others) = true;
    }
  }
  return contents;
}

Json layer_of(Json mark, Json encoding, const char* filter = nullptr) {
  Json layer = {{"mark", std::move(mark)}, {"encoding", std::move(encoding)}};
  if (filter) layer["transform"] = Json::array({{{"filter", filter}}});
  return layer;
}

/// Bands and bars over the interval.
void add_bounds(Json& layers, const Json& y) {
  Json range = y;
  range["field"] = "low";
  const Json to = {{"field", "high"}};
  for (const auto& [mark, opacity] : {std::pair{"area", 0.15}, std::pair{"rule", 1.0}}) {
    layers.push_back(layer_of({{"type", mark}},
                              {{"y", range}, {"y2", to}, {"opacity", legend_opacity(opacity)}}));
  }
}

Json layers_of(const Panel& panel, const std::vector<std::string>& order, const Json& y,
               const Contents& contents) {
  Json layers = Json::array();
  if (contents.bounds) add_bounds(layers, y);
  const char* filter = contents.zeros && contents.others ? "!datum.zero" : nullptr;
  Json encoding = {{"y", y}, {"opacity", legend_opacity(1)}};
  layers.push_back(layer_of({{"type", "line"}, {"strokeWidth", 2}}, encoding, filter));
  std::vector<std::pair<std::string, std::string>> own{{"series", "label"}, {"said", "value"}};
  if (contents.bounds) own = {{"series", "label"}, {"said", "median"}, {"between", "interval"}};
  encoding["tooltip"] = tooltip(own);
  if (contents.zeros) {
    const Json hollow = {
        {"type", "point"}, {"filled", false}, {"size", 70}, {"shape", "triangle-down"}};
    layers.push_back(layer_of(hollow, encoding, "datum.zero"));
  }
  encoding["shape"] = shape_encoding(panel.series, order);
  Json points = layer_of({{"type", "point"}, {"filled", true}, {"size", 55}}, encoding, filter);
  points["params"] = legend_selection();
  layers.push_back(std::move(points));
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
  const Contents contents = contents_of(panel, points, request, scale.factor);
  const Json published = published_rows(request, scale.factor);
  std::vector<double> heights;
  std::vector<double> further_x;
  for (const Json& row : contents.rows) heights.push_back(row["y"].get<double>());
  for (const Json& row : published) {
    heights.push_back(row["y"].get<double>());
    further_x.push_back(row["x"].get<double>());
  }
  std::set<std::string> shown = series_of(contents.rows);
  shown.merge(series_of(published));
  shown.merge(failed_series(panel));
  const Panel drawn = with_series(panel, shown);
  const Json y = y_encoding(panel, request.axis + " (" + scale.unit + ")", heights);
  Json layers = layers_of(drawn, order, y, contents);
  add_published(layers, published, y);
  std::string caption = request.caption;
  if (!published.empty()) caption += " Hollow and dashed: published numbers.";
  if (contents.zeros) caption += " Hollow triangles at the foot: exactly 0.";
  if (contents.across) {
    caption += " What has no " + panel.axis + " is one measurement, drawn all across.";
  }
  caption += not_drawn_words(panel, shown);
  Figure figure = framed(drawn, request.what, request.title, caption, order, std::move(layers));
  figure.spec["encoding"]["x"] = x_encoding(panel, further_x);
  figure.spec["data"] = {{"name", "measured"}, {"values", contents.rows}};
  if (!published.empty()) {
    figure.subtitle += ". Hollow and dashed: published numbers, of another machine";
    figure.spec["title"]["subtitle"] = wrapped_lines(figure.subtitle);
  }
  return figure;
}

}  // namespace attnbench::reports
