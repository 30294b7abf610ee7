#include "reports/figures/ratios.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "core/result/record.hpp"
#include "core/text/format.hpp"
#include "reports/figures/legend.hpp"
#include "reports/figures/lines.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Placed;

std::string times_words(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g times", ratio);
  return text;
}

Scale ratio_scale(const std::vector<double>&) { return {1, "times"}; }

/// The baseline's times by place on the axis.
std::map<std::string, Measured> baseline_of(const Panel& panel, const std::string& series,
                                            const Quantity& time) {
  std::map<std::string, Measured> times;
  for (const Placed& placed : panel.cells) {
    if (placed.series != series || !placed.x) continue;
    if (const auto measured = time(*placed.cell)) times[placed.x->dump()] = *measured;
  }
  return times;
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), share < 0.0995 ? "%.1f %%" : "%.0f %%", share * 100);
  return text.data();
}

Json rows_of(const result::Panel& panel) {
  Json rows = Json::array();
  for (const result::Placed& placed : panel.cells) {
    const auto time = time_quantity("")(*placed.cell);  // of ok cells alone
    const auto roofline = result::roofline_of(*placed.cell);
    if (!time || !roofline) continue;
    for (const Json& x : places(panel, placed)) {
      Json row = provenance_row(*placed.cell);
      row.update({{"x", x},
                  {"y", roofline->share},
                  {"series", placed.series},
                  {"bound", roofline->bound},
                  {"said", percent(roofline->share)},
                  {"median", result::human_seconds(time->value)},
                  {"floor", result::human_seconds(roofline->floor_seconds)}});
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

std::optional<Figure> speedup_figure(const Panel& panel, const std::vector<std::string>& order,
                                     const std::vector<PublishedRow>& published,
                                     const std::string& timing) {
  if (order.empty()) return std::nullopt;
  const Quantity time = time_quantity(timing);
  const auto baseline = baseline_of(panel, order.front(), time);
  std::map<const Json*, Measured> ratios;
  bool any = false;
  for (const Placed& placed : panel.cells) {
    const auto measured = time(*placed.cell);
    const auto found = placed.x ? baseline.find(placed.x->dump()) : baseline.end();
    if (!measured || found == baseline.end()) continue;
    const Measured& base = found->second;
    const bool own = placed.series == order.front();
    ratios[placed.cell] = own ? Measured{1, 1, 1, ""}
                              : Measured{base.value / measured->value, base.low / measured->high,
                                         base.high / measured->low, measured->interval};
    any = any || !own;
  }
  if (!any) return std::nullopt;
  LineRequest request;
  request.published = published_speedups(published, panel);
  request.what = timing.empty() ? "speedup" : timing + "_speedup";
  request.title = timing.empty() ? "Speedup over " + order.front()
                                 : "Speedup of " + timing + " over " + order.front();
  request.axis = "speedup over " + order.front();
  request.caption = "The median time of " + order.front() +
                    " over that of each; bars and bands: the quotient of the intervals." +
                    disturbed_words(panel);
  request.quantity = [ratios](const Json& cell) -> std::optional<Measured> {
    const auto found = ratios.find(&cell);
    if (found == ratios.end()) return std::nullopt;
    return found->second;
  };
  request.scale = ratio_scale;
  request.words = times_words;
  return line_figure(panel, order, request);
}

std::optional<Figure> roofline_figure(const result::Panel& panel,
                                      const std::vector<std::string>& order) {
  const Json rows = rows_of(panel);
  if (rows.empty()) return std::nullopt;
  const result::Panel drawn = with_series(panel, series_of(rows));
  double most = 0.1;
  for (const Json& row : rows) most = std::max(most, row["y"].get<double>() * 1.03);
  const Json y = {{"field", "y"},
                  {"type", "quantitative"},
                  {"title", "floor / time"},
                  {"scale", {{"domain", {0, std::ceil(most * 10) / 10}}}},
                  {"axis", {{"format", ".0%"}}}};
  const Json bound = {{"field", "bound"},
                      {"type", "nominal"},
                      {"title", "bound by"},
                      {"scale",
                       {{"domain", {"compute", "memory", "exponentials"}},
                        {"range", {"#0072b2", "#d55e00", "#009e73"}}}}};
  Json shape = shape_encoding(drawn.series, order);
  shape["title"] = "label";
  Json layers = Json::array();
  layers.push_back({{"mark", {{"type", "line"}, {"strokeWidth", 1}}},
                    {"encoding",
                     {{"y", y},
                      {"color", {{"value", "#909090"}}},
                      {"detail", {{"field", "series"}, {"type", "nominal"}}},
                      {"opacity", legend_opacity(0.7)}}}});
  layers.push_back({{"params", legend_selection()},
                    {"mark", {{"type", "point"}, {"filled", true}, {"size", 70}}},
                    {"encoding",
                     {{"y", y},
                      {"color", bound},
                      {"shape", shape},
                      {"opacity", legend_opacity(1)},
                      {"tooltip", tooltip({{"series", "label"},
                                           {"said", "share of the floor"},
                                           {"bound", "bound by"},
                                           {"median", "median"},
                                           {"floor", "floor"}})}}}});
  Figure figure = framed(
      drawn, "roofline", "Share of the floor that is reached",
      "The floor is the least time that this machine's measured ceilings allow for the "
      "operations, bytes and exponentials of the cell; the colour says which of them binds." +
          disturbed_words(panel) + not_drawn_words(panel, series_of(rows)),
      order, std::move(layers));
  figure.spec["data"] = {{"name", "measured"}, {"values", rows}};
  figure.spec["encoding"].erase("color");  // here colour says what binds
  figure.spec["layer"].erase(figure.spec["layer"].begin() + 1, figure.spec["layer"].end());
  return figure;
}

}  // namespace attnbench::reports
