#include "reports/figures/kinds.hpp"

#include <algorithm>
#include <cmath>

#include "core/text/format.hpp"
#include "reports/figures/end_labels.hpp"
#include "reports/figures/legend.hpp"
#include "reports/figures/spec.hpp"
#include "reports/tables/conditions.hpp"

namespace attnbench::reports {
namespace {

/// A ring with a stroke through it: neither ours that counts nor hollow as published numbers are.
constexpr const char* disturbed_shape = "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0M-0.7,0.7L0.7,-0.7";
constexpr double disturbed_width = 1.5;
constexpr const char* disturbed_entry = "disturbed: other programs had the CPU";

struct Point {
  const Placed* placed;
  PlottedValue measured;
  bool disturbed = false;
};

std::vector<Point> points_of(const Panel& panel, const LineRequest& request) {
  std::vector<Point> points;
  for (const Placed& placed : panel.cells) {
    if (const auto measured = request.quantity(*placed.cell)) {
      points.push_back({&placed, *measured});
    } else if (const auto marked =
                   request.disturbed ? request.disturbed(*placed.cell) : std::nullopt) {
      points.push_back({&placed, *marked, true});
    }
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

/// Whether it stands at the foot of a logarithmic axis, which has no 0.
bool is_grounded(const Point& point, double foot) { return foot > 0 && point.measured.value <= 0; }

Json row_of(const Point& point, const Json& x, const LineRequest& request, double factor,
            double foot) {
  Json row = provenance_row(*point.placed->cell);
  const PlottedValue& measured = point.measured;
  const bool grounded = is_grounded(point, foot);
  row.update({{"x", x},
              {"series", point.placed->series},
              {"y", (grounded ? foot : measured.value) * factor},
              {"low", (grounded ? foot : measured.low) * factor},
              {"high", (grounded ? foot : measured.high) * factor},
              {"zero", grounded},
              {"said", request.words(measured.value)},
              {"disturbed", point.disturbed}});
  if (point.disturbed) {
    row.update({{"mark", disturbed_entry}, {"reason", point.placed->cell->reason}});
  }
  if (!measured.interval.empty()) {
    row.update({{"between", request.words(measured.low) + " to " + request.words(measured.high) +
                                " (" + measured.interval + ")"}});
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

/// The data of a figure, and what is in it: an empty layer would make Vega warn.
struct Contents {
  Json rows = Json::array();
  std::vector<double> heights;  ///< of the rows, bounds included
  std::set<std::string> series;
  bool bounds = false;     ///< any value has an interval
  bool zeros = false;      ///< any value stands at the foot of a logarithmic axis
  bool others = false;     ///< any value does not
  bool disturbed = false;  ///< any value is of a cell that was disturbed
  bool across = false;     ///< any cell without the axis' option is drawn at all its values
};

Contents contents_of(const Panel& panel, const std::vector<Point>& points,
                     const LineRequest& request, double factor) {
  const double foot = is_logarithmic(panel) ? foot_of(points) : 0;
  Contents contents;
  for (const Point& point : points) {
    contents.bounds = contents.bounds || !point.measured.interval.empty();
    contents.across = contents.across || !point.placed->x;
    contents.series.insert(point.placed->series);
    const bool zero = is_grounded(point, foot);
    for (const Json& x : places(panel, *point.placed)) {
      contents.rows.push_back(row_of(point, x, request, factor, foot));
      const auto& [value, low, high, interval] = point.measured;
      for (const double one : {value, low, high}) {
        if (zero || one > 0 || foot == 0) contents.heights.push_back((zero ? foot : one) * factor);
      }
      (point.disturbed ? contents.disturbed : zero ? contents.zeros : contents.others) = true;
    }
  }
  return contents;
}

Json layer_of(Json mark, Json encoding, const std::string& filter = "") {
  Json layer = {{"mark", std::move(mark)}, {"encoding", std::move(encoding)}};
  if (!filter.empty()) layer.update({{"transform", Json::array({{{"filter", filter}}})}});
  return layer;
}

/// Bands and bars over the interval.
void add_bounds(Json& layers, const Json& y, const std::string& filter) {
  const Json range = with_field(y, "low");
  const Json to = {{"field", "high"}};
  for (const auto& [mark, opacity] : {std::pair{"area", 0.15}, std::pair{"rule", 1.0}}) {
    layers.push_back(layer_of({{"type", mark}},
                              {{"y", range}, {"y2", to}, {"opacity", legend_opacity(opacity)}},
                              filter));
  }
}

/// An entry of its own in the legend, by a channel that nothing else uses.
Json disturbed_legend() {
  return {{"field", "mark"},
          {"type", "ordinal"},  // of a nominal field Vega-Lite warns here
          {"scale",
           {{"domain", Json::array({disturbed_entry})}, {"range", Json::array({disturbed_width})}}},
          {"legend",
           {{"title", nullptr},
            {"symbolType", disturbed_shape},
            {"symbolFillColor", "transparent"},
            {"symbolStrokeColor", "#808080"},
            {"symbolStrokeWidth", disturbed_width},
            // Vega places a label by the width of the stroke, into the ring, whatever its offset,
            // and trims blanks that nothing stands before.
            {"labelExpr", "'\u200b\u00a0\u00a0\u00a0' + datum.label"},
            {"labelLimit", 300}}}};
}

Json disturbed_layer(const Json& y) {
  const Json mark = {
      {"type", "point"}, {"filled", false}, {"shape", disturbed_shape}, {"size", 110}};
  return layer_of(mark,
                  {{"y", y},
                   {"strokeWidth", disturbed_legend()},
                   {"opacity", legend_opacity(1)},
                   {"tooltip", tooltip({{"series", "label"},
                                        {"mark", "status"},
                                        {"reason", "reason"},
                                        {"said", "least sample, which does not count"}})}},
                  "datum.disturbed");
}

/// The height of a series' line at `x`, between its points; nothing outside of them.
std::optional<double> height_at(const Json& rows, const std::string& series, double x,
                                bool logarithmic) {
  const Json* before = nullptr;
  const Json* after = nullptr;
  for (const Json& row : rows) {
    if (row["series"] != series || row["disturbed"] || !row["x"].is_number()) continue;
    const double place = row["x"];
    if (place <= x && (before == nullptr || place > (*before)["x"])) before = &row;
    if (place >= x && (after == nullptr || place < (*after)["x"])) after = &row;
  }
  if (before == nullptr || after == nullptr) return std::nullopt;
  const auto along = [&](double value) { return logarithmic ? std::log(value) : value; };
  const double left = along((*before)["x"]), right = along((*after)["x"]);
  const double low = along((*before)["y"]), high = along((*after)["y"]);
  const double share = right > left ? (along(x) - left) / (right - left) : 0;
  const double height = low + share * (high - low);
  return logarithmic ? std::exp(height) : height;
}

/// Adds a ring at each crossing that lies on a line, and a bar over its interval. Whether there is
/// one.
bool add_crossings(Json& layers, const Panel& panel, const Json& y, const Json& lines,
                   const std::vector<LineCrossing>& crossings) {
  Json rows = Json::array();
  for (const LineCrossing& one : crossings) {
    const auto height = height_at(lines, one.series, one.at, is_logarithmic(panel));
    if (!height) continue;
    const double left = one.low.value_or(one.at);
    rows.push_back({{"series", one.series},
                    {"x", one.at},
                    {"left", left},
                    {"right", one.high},
                    {"y", *height},
                    {"said", one.words}});
    if (!one.command.empty()) rows.back().update({{"command", one.command}});
  }
  if (rows.empty()) return false;
  const Json data = {{"name", "crossings"}, {"values", std::move(rows)}};
  layers.push_back({{"data", data},
                    {"mark", {{"type", "rule"}, {"strokeWidth", 7}, {"strokeCap", "round"}}},
                    {"encoding",
                     {{"x", {{"field", "left"}, {"type", "quantitative"}}},
                      {"x2", {{"field", "right"}}},
                      {"y", y},
                      {"opacity", legend_opacity(0.25)}}}});
  layers.push_back({{"data", data},
                    {"mark",
                     {{"type", "point"},
                      {"shape", "circle"},
                      {"filled", false},
                      {"size", 130},
                      {"strokeWidth", 2.5}}},
                    {"encoding",
                     {{"y", y},
                      {"opacity", legend_opacity(1)},
                      {"tooltip", Json::array({{{"field", "series"}, {"title", "label"}},
                                               {{"field", "said"}, {"title", "crossing"}}})}}}});
  return true;
}

/// The scale of these values in the unit that is asked for.
Scale scale_of(const LineRequest& request, const std::vector<double>& values) {
  for (const auto* scales : {&time_scales(), &byte_scales()}) {
    for (const Scale& scale : *scales) {
      if (scale.unit == request.unit) return scale;
    }
  }
  return request.scale(values);
}

/// Where each line ends, by what counts; by what was disturbed where there is nothing else.
std::vector<LineEnd> ends_of(const Panel& panel, const Json& rows, const Json& published) {
  std::vector<LineEnd> ends;
  for (const std::string& series : panel.series) {
    const Json* last = nullptr;
    for (const Json* all : {&rows, &published}) {
      for (const Json& row : *all) {
        if (row["series"] != series) continue;
        const auto rank = [](const Json& one) {
          return std::pair(!one.value("disturbed", false), one["x"].get<double>());
        };
        if (last == nullptr || rank(row) >= rank(*last)) last = &row;
      }
    }
    if (last != nullptr) ends.push_back({series, (*last)["x"], (*last)["y"].get<double>()});
  }
  return ends;
}

/// Whether lines can be told by labels at their ends: there are lines, along numbers that a suite
/// chose, and not too many.
bool is_labelled(const Panel& panel, const Panel& drawn) {
  const std::vector<double> values = numeric_axis(panel);
  return values.size() > 1 && values.size() == axis_values(panel).size() &&
         panel.axis != state_bytes && drawn.series.size() <= max_labelled;
}

Json layers_of(const Panel& panel, const Palette& palette, const Json& y, const Contents& contents,
               bool labelled) {
  Json layers = Json::array();
  const std::string counts = contents.disturbed ? "!datum.disturbed" : "";
  const std::string filter =
      contents.zeros && contents.others ? "!datum.disturbed && !datum.zero" : counts;
  if (contents.zeros || contents.others) {
    if (contents.bounds) add_bounds(layers, y, counts);
    Json encoding = {{"y", y}, {"opacity", legend_opacity(1)}};
    Json line = encoding;
    line["strokeWidth"] = {
        {"condition", {{"test", "datum.mechanism == 'softmax'"}, {"value", 3.5}}}, {"value", 2}};
    if (const Json dash = dash_encoding(panel.series, palette); !dash.is_null()) {
      line["strokeDash"] = dash;
    }
    layers.push_back(layer_of({{"type", "line"}}, line, filter));
    std::vector<std::pair<std::string, std::string>> own{{"series", "label"}, {"said", "value"}};
    if (contents.bounds) own = {{"series", "label"}, {"said", "median"}, {"between", "interval"}};
    encoding.update({{"tooltip", tooltip(own)}});
    if (contents.zeros) {
      const Json hollow = {
          {"type", "point"}, {"filled", false}, {"size", 70}, {"shape", "triangle-down"}};
      layers.push_back(layer_of(hollow, encoding, "!datum.disturbed && datum.zero"));
    }
    const Json shape = shape_encoding(panel.series, palette);
    encoding.update({{"shape", labelled ? without_legend(shape) : shape}});
    layers.push_back(
        layer_of({{"type", "point"}, {"filled", true}, {"size", 55}}, encoding, filter));
  }
  if (contents.disturbed) layers.push_back(disturbed_layer(y));
  if (!labelled) layers.back().update({{"params", legend_selection()}});
  return layers;
}

}  // namespace

std::optional<Figure> line_figure(const Panel& panel, const Palette& palette,
                                  const LineRequest& request) {
  const std::vector<Point> points = points_of(panel, request);
  if (points.empty()) return std::nullopt;
  std::vector<double> values;
  for (const Point& point : points) {
    if (!point.disturbed) values.push_back(point.measured.value);
  }
  if (values.empty()) values.push_back(points.front().measured.value);
  const Scale scale = scale_of(request, values);
  const Contents contents = contents_of(panel, points, request, scale.factor);
  const Json published = published_rows(request, scale.factor);
  std::vector<double> heights = contents.heights;
  std::vector<double> further_x;
  std::set<std::string> shown = contents.series;
  for (const Published& number : request.published) {
    heights.push_back(number.y * scale.factor);
    further_x.push_back(number.x);
    shown.insert(number.label);
  }
  shown.merge(failed_series(panel));
  const Panel drawn = with_series(panel, shown);
  const Json y = y_encoding(panel, request.axis + " (" + scale.unit + ")", heights);
  const bool labelled = is_labelled(panel, drawn);
  Json layers = layers_of(drawn, palette, y, contents, labelled);
  add_published(layers, published, y);
  const bool crossed = add_crossings(layers, drawn, y, contents.rows, request.crossings);
  Json x = x_encoding(panel, further_x);
  if (labelled) {
    const std::vector<LineEnd> ends = ends_of(drawn, contents.rows, published);
    layers.push_back(end_label_layer(ends, y, figure_height));
    x = with_label_room(std::move(x), ends);
  }
  std::string caption = request.caption;
  if (!published.empty()) caption += " Hollow: published numbers.";
  if (crossed) {
    caption += " Rings: where a line crosses that of exact attention, with that length's interval.";
  }
  if (contents.zeros) caption += " Hollow triangles at the foot: exactly 0.";
  if (contents.across) {
    caption += " What has no " + panel.axis + " is one measurement, drawn all across.";
  }
  if (contents.disturbed) {
    caption +=
        " Crossed rings: the least sample where other programs had the CPU (disturbed); they count "
        "for nothing.";
  }
  caption += not_drawn_words(panel, shown);
  return framed({.what = request.what,
                 .title = request.title,
                 .caption = caption,
                 .note = published.empty() ? "" : ". Hollow: published numbers, of another machine",
                 .x = std::move(x),
                 .labelled = labelled,
                 .rows = contents.rows,
                 .layers = std::move(layers)},
                drawn, palette);
}

}  // namespace attnbench::reports
