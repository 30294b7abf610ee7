#include "reports/figures/slopes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "core/statistics.hpp"
#include "core/text/format.hpp"
#include "reports/figures/legend.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"
#include "reports/tables/panel_growth.hpp"

namespace attnbench::reports {
namespace {

using result::Growing;
using result::Panel;
using result::Placed;

/// A value with its bounds; workspace has none.
std::optional<Measured> measured(const Json& cell, Growing what) {
  return what == Growing::time ? time_quantity("")(cell)
                               : number_quantity("memory", "workspace_bytes")(cell);
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

/// From 0 (or the least slope) to a little above the greatest of all exponents. Bars of noisy cells
/// are cut at the frame rather than squeeze what is to be read.
Json domain_of(const Json& rows, const Json& claims) {
  double low = 0;
  double high = 1;
  for (const Json& row : rows) {
    low = std::min(low, row["y"].get<double>());
    high = std::max(high, row["y"].get<double>());
  }
  for (const Json& claim : claims) high = std::max(high, claim["y"].get<double>());
  return {std::floor(low * 5) / 5, std::ceil(high * 5 + 0.5) / 5};
}

/// Cells of each series with a positive value at a positive place on the axis, ascending.
std::map<std::string, std::vector<const Placed*>> neighbours_of(const Panel& panel, Growing what) {
  std::map<std::string, std::vector<const Placed*>> series;
  for (const Placed& placed : panel.cells) {
    const auto value = measured(*placed.cell, what);
    const bool usable = placed.x && placed.x->is_number() && placed.x->get<double>() > 0 && value &&
                        value->value > 0;
    if (usable) series[placed.series].push_back(&placed);
  }
  for (auto& [name, cells] : series) {
    std::sort(cells.begin(), cells.end(), [](const Placed* a, const Placed* b) {
      return a->x->get<double>() < b->x->get<double>();
    });
  }
  return series;
}

Json row_of(const Placed& from, const Placed& to, Growing what) {
  const double x0 = from.x->get<double>();
  const double x1 = to.x->get<double>();
  const Measured low = *measured(*from.cell, what);
  const Measured high = *measured(*to.cell, what);
  const double slope = measure::growth_exponent({x0, x1}, {low.value, high.value});
  Json row = provenance_row(*to.cell);
  row["series"] = from.series;
  row["x"] = std::sqrt(x0 * x1);
  row["y"] = slope;
  // The steepest and the flattest line that the two intervals allow.
  row["low"] = measure::growth_exponent({x0, x1}, {low.high, high.low});
  row["high"] = measure::growth_exponent({x0, x1}, {low.low, high.high});
  row["said"] = result::exponent_text(slope);
  row["between"] = result::exponent_text(row["low"].get<double>()) + " to " +
                   result::exponent_text(row["high"].get<double>());
  row["where"] = result::human_value(*from.x) + " to " + result::human_value(*to.x);
  row["length"] = row["where"];
  row["large"] = what != Growing::time ||
                 (low.value >= result::enough_seconds && high.value >= result::enough_seconds);
  return row;
}

/// "softmax 1.99 (claimed 2: held); …", where there are enough cells to fit.
std::string fits_of(const Panel& panel, Growing what) {
  std::string text;
  for (const result::PanelGrowth& grown : result::panel_growth(panel, what)) {
    if (!grown.fit.measured) continue;
    text.append(text.empty() ? " Fitted: " : "; ").append(grown.series).append(" ");
    text.append(result::exponent_text(*grown.fit.measured));
    if (!grown.claimed) continue;
    text.append(" (claimed ").append(short_number(*grown.claimed)).append(": ");
    text.append(grown.word).append(")");
  }
  return text.empty() ? text : text + ".";
}

/// The claimed exponents, each with the labels that claim it.
Json claims_of(const Panel& panel, Growing what) {
  std::map<double, std::vector<std::string>> labels;
  for (const Placed& placed : panel.cells) {
    const auto claim = result::claimed_exponent(*placed.cell, what, panel.axis);
    if (!claim) continue;
    std::vector<std::string>& names = labels[*claim];
    if (std::find(names.begin(), names.end(), placed.series) == names.end()) {
      names.push_back(placed.series);
    }
  }
  Json rows = Json::array();
  for (const auto& [exponent, names] : labels) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : "; ") + name;
    rows.push_back({{"y", exponent}, {"claim", "claimed " + short_number(exponent)}, {"by", text}});
  }
  return rows;
}

void add_claims(Json& layers, const Json& claims) {
  if (claims.empty()) return;
  const Json data = {{"name", "claims"}, {"values", claims}};
  const Json y = {{"field", "y"}, {"type", "quantitative"}};
  const Json fields = Json::array({{{"field", "claim"}, {"title", "exponent"}, {"type", "nominal"}},
                                   {{"field", "by"}, {"title", "of"}, {"type", "nominal"}}});
  const Json plain = {{"value", "#808080"}};
  layers.push_back(
      {{"data", data},
       {"mark", {{"type", "rule"}, {"strokeDash", {6, 4}}, {"strokeWidth", 1.5}}},
       {"encoding", {{"x", nullptr}, {"y", y}, {"color", plain}, {"tooltip", fields}}}});
  layers.push_back({{"data", data},
                    {"mark",
                     {{"type", "text"},
                      {"align", "left"},
                      {"baseline", "bottom"},
                      {"dy", -3},
                      {"fontSize", 11}}},
                    {"encoding",
                     {{"x", {{"value", 4}}},
                      {"y", y},
                      {"color", plain},
                      {"text", {{"field", "claim"}, {"type", "nominal"}}},
                      {"tooltip", fields}}}});
}

/// Opacity by the legend's choice and by whether the cells are large enough to tell.
Json opacity(double large, double small) {
  return {{"condition",
           Json::array({{{"test", {{"and", Json::array({{{"param", "shown"}}, "datum.large"})}}},
                         {"value", large}},
                        {{"param", "shown"}, {"value", small}}})},
          {"value", faded}};
}

}  // namespace

std::optional<Figure> slopes_figure(const Panel& panel, const std::vector<std::string>& order,
                                    Growing what) {
  Json rows = Json::array();
  for (const auto& [name, cells] : neighbours_of(panel, what)) {
    for (std::size_t i = 1; i < cells.size(); ++i) {
      if (*cells[i - 1]->x != *cells[i]->x) {
        rows.push_back(row_of(*cells[i - 1], *cells[i], what));
      }
    }
  }
  if (rows.empty()) return std::nullopt;
  const bool time = what == Growing::time;
  const std::string quantity = time ? "time" : "workspace";
  const Json claims = claims_of(panel, what);
  const Json y = {{"field", "y"},
                  {"type", "quantitative"},
                  {"title", "growth exponent of the " + quantity},
                  {"scale", {{"domain", domain_of(rows, claims)}, {"nice", false}}},
                  {"axis", {{"format", ".1f"}}}};
  Json range = y;
  range["field"] = "low";
  const Panel drawn = with_series(panel, series_of(rows));
  Json layers = Json::array();
  add_claims(layers, claims);
  layers.push_back(
      {{"mark", {{"type", "rule"}, {"clip", true}}},
       {"encoding", {{"y", range}, {"y2", {{"field", "high"}}}, {"opacity", opacity(0.7, 0.15)}}}});
  layers.push_back({{"mark", {{"type", "line"}, {"strokeWidth", 1.5}}},
                    {"encoding", {{"y", y}, {"opacity", legend_opacity(0.3)}}}});
  layers.push_back({{"params", legend_selection()},
                    {"mark", {{"type", "point"}, {"filled", true}, {"size", 60}}},
                    {"encoding",
                     {{"y", y},
                      {"shape", shape_encoding(drawn.series, order)},
                      {"opacity", opacity(1, 0.25)},
                      {"tooltip", tooltip({{"series", "label"},
                                           {"said", "exponent"},
                                           {"between", "interval"},
                                           {"where", "between"}})}}}});
  const std::string caption =
      "Each point is the power by which the " + quantity + " grows between two neighbours" +
      (claims.empty() ? "." : "; dashed, what is claimed.") +
      (time ? " Faint: cells under 5 ms, whose constant costs still count." : "") +
      fits_of(panel, what) + (time ? disturbed_words(panel) : "") +
      not_drawn_words(panel, series_of(rows));
  Figure figure = framed(drawn, time ? "slopes" : "memory_slopes",
                         "Local growth of the " + quantity + " along the axis", caption, order,
                         std::move(layers));
  figure.spec["data"] = {{"name", "measured"}, {"values", rows}};
  // A cell without a time has no slope to miss: its mark belongs into the figure of the times.
  figure.spec["layer"].erase(figure.spec["layer"].begin() + 1, figure.spec["layer"].end());
  return figure;
}

}  // namespace attnbench::reports
