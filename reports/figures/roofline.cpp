#include "reports/figures/roofline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/text/format.hpp"
#include "reports/figures/legend.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"

namespace attnbench::reports {
namespace {

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), share < 0.0995 ? "%.1f %%" : "%.0f %%", share * 100);
  return text.data();
}

Json rows_of(const result::Panel& panel) {
  Json rows = Json::array();
  for (const result::Placed& placed : panel.cells) {
    const auto time = time_quantity("")(*placed.cell);  // of ok cells alone
    if (!time || !placed.cell->contains("roofline")) continue;
    const Json& roofline = (*placed.cell)["roofline"];
    const double share = roofline["share"].get<double>();
    for (const Json& x : places(panel, placed)) {
      Json row = provenance_row(*placed.cell);
      row.update({{"x", x},
                  {"y", share},
                  {"series", placed.series},
                  {"bound", roofline["bound"]},
                  {"said", percent(share)},
                  {"median", result::human_seconds(time->value)},
                  {"floor", result::human_seconds(roofline["floor_seconds"].get<double>())}});
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

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
