#include "reports/figures/kinds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "core/text/format.hpp"
#include "reports/figures/legend.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"
#include "reports/figures/ticks.hpp"
#include "reports/tables/conditions.hpp"

namespace attnbench::reports {
namespace {

std::string times_words(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g times", ratio);
  return text;
}

Scale ratio_scale(const std::vector<double>&) { return {1, "times"}; }

/// The baseline's times by place on the axis.
std::map<std::string, PlottedValue> baseline_of(const Panel& panel, const std::string& series,
                                                const Quantity& time) {
  std::map<std::string, PlottedValue> times;
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

struct Shares {
  Json rows = Json::array();
  std::set<std::string> series;
  double most = 0;
};

Shares shares_of(const Panel& panel) {
  Shares shares;
  for (const Placed& placed : panel.cells) {
    const auto time = time_quantity("")(*placed.cell);  // of ok cells alone
    const auto& roofline = placed.cell->roofline;
    if (!time || !roofline || roofline->share <= 0) continue;  // the axis is logarithmic
    shares.series.insert(placed.series);
    shares.most = std::max(shares.most, roofline->share);
    for (const Json& x : places(panel, placed)) {
      Json row = provenance_row(*placed.cell);
      row.update({{"x", x},
                  {"y", roofline->share},
                  {"series", placed.series},
                  {"bound", roofline->bound},
                  {"said", percent(roofline->share)},
                  {"median", text::human_seconds(time->value)},
                  {"floor", text::human_seconds(roofline->floor_seconds)}});
      shares.rows.push_back(std::move(row));
    }
  }
  return shares;
}

/// A logarithmic axis from the power of ten at or below the smallest share to 1, or to a little
/// above the largest. Shares span decades, of which a linear axis would show only the last.
Json share_axis(const std::vector<double>& shares) {
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  const double low = std::pow(10, std::floor(std::log10(*least)));
  Json ticks = Json::array();
  for (const Json& tick : decade_ticks({low, 1.0})) {
    if (tick.get<double>() >= low * 0.99 && tick.get<double>() <= std::max(1.0, *most * 1.03)) {
      ticks.push_back(tick);
    }
  }
  return {
      {"field", "y"},
      {"type", "quantitative"},
      {"title", "floor / time"},
      {"scale", {{"type", "log"}, {"nice", false}, {"domain", {low, std::max(1.0, *most * 1.03)}}}},
      {"axis", {{"format", ".2~p"}, {"values", ticks}}}};
}

}  // namespace

std::optional<Figure> speedup_figure(const Panel& panel, const Palette& palette,
                                     const std::vector<PublishedRow>& published,
                                     const std::string& timing) {
  if (palette.empty()) return std::nullopt;
  const Quantity time = time_quantity(timing);
  const auto baseline = baseline_of(panel, palette.first(), time);
  std::map<const CellRecord*, PlottedValue> ratios;
  bool any = false;
  for (const Placed& placed : panel.cells) {
    const auto measured = time(*placed.cell);
    const auto found = placed.x ? baseline.find(placed.x->dump()) : baseline.end();
    if (!measured || found == baseline.end()) continue;
    const PlottedValue& base = found->second;
    const bool own = placed.series == palette.first();
    ratios[placed.cell] =
        own ? PlottedValue{1, 1, 1, ""}
            : PlottedValue{base.value / measured->value, base.low / measured->high,
                           base.high / measured->low, measured->interval};
    any = any || !own;
  }
  if (!any) return std::nullopt;
  LineRequest request;
  request.published = published_speedups(published, panel);
  request.what = timing.empty() ? "speedup" : timing + "_speedup";
  request.title = timing.empty() ? "Speedup over " + palette.first()
                                 : "Speedup of " + timing + " over " + palette.first();
  request.axis = "speedup over " + palette.first();
  request.caption = "The median time of " + palette.first() +
                    " over that of each; bars and bands: the quotient of the intervals." +
                    disturbed_words(panel);
  request.quantity = [ratios](const CellRecord& cell) -> std::optional<PlottedValue> {
    const auto found = ratios.find(&cell);
    if (found == ratios.end()) return std::nullopt;
    return found->second;
  };
  request.scale = ratio_scale;
  request.words = times_words;
  return line_figure(panel, palette, request);
}

std::optional<Figure> roofline_figure(const Panel& panel, const Palette& palette) {
  Shares shares = shares_of(panel);
  if (shares.rows.empty()) return std::nullopt;
  const Panel drawn = with_series(panel, shares.series);
  std::vector<double> heights;
  for (const Json& row : shares.rows) heights.push_back(row["y"].get<double>());
  const Json y = share_axis(heights);
  const Json bound = {{"field", "bound"},
                      {"type", "nominal"},
                      {"title", "bound by"},
                      {"scale",
                       {{"domain", {"compute", "memory", "exponentials"}},
                        {"range", {accent_blue, accent_orange, accent_green}}}}};
  Json shape = shape_encoding(drawn.series, palette);
  shape.update({{"title", "label"}});
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
  return framed(
      {.what = "roofline",
       .title = "Share of the floor that is reached",
       .caption =
           "The floor is the least time that this machine's measured ceilings allow for the "
           "operations, bytes and exponentials of the cell; the colour says which of them binds." +
           disturbed_words(panel) + not_drawn_words(panel, shares.series),
       .coloured = false,  // here colour says what binds
       .grouping = Grouping::alone,
       .rows = std::move(shares.rows),
       .layers = std::move(layers)},
      drawn, palette);
}

}  // namespace attnbench::reports
