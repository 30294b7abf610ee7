#include "reports/slopes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "harness/measure/statistics.hpp"
#include "harness/result/format.hpp"
#include "harness/result/growth.hpp"
#include "reports/points.hpp"
#include "reports/spec.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Placed;

/// From here on the asymptotic part of a cell's time is taken to be what grows.
constexpr double enough_seconds = 5e-3;

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

/// Timed cells of each series with a positive axis value, ascending.
std::map<std::string, std::vector<const Placed*>> neighbours_of(const Panel& panel) {
  std::map<std::string, std::vector<const Placed*>> series;
  for (const Placed& placed : panel.cells) {
    const bool usable = placed.x && placed.x->is_number() && placed.x->get<double>() > 0 &&
                        time_quantity("")(*placed.cell);
    if (usable) series[placed.series].push_back(&placed);
  }
  for (auto& [name, cells] : series) {
    std::sort(cells.begin(), cells.end(), [](const Placed* a, const Placed* b) {
      return a->x->get<double>() < b->x->get<double>();
    });
  }
  return series;
}

Json row_of(const Placed& from, const Placed& to) {
  const double x0 = from.x->get<double>();
  const double x1 = to.x->get<double>();
  const Measured low = *time_quantity("")(*from.cell);
  const Measured high = *time_quantity("")(*to.cell);
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
  row["large"] = low.value >= enough_seconds && high.value >= enough_seconds;
  return row;
}

/// The exponent that a cell's implementation claims for its time along the panel's axis.
std::optional<double> claim_of(const Panel& panel, const Json& cell) {
  const std::string key = panel.axis == "length"          ? "time_in_length"
                          : panel.axis == "latents_total" ? "time_in_latents"
                                                          : "";
  const Json growth = cell.value("growth", Json::object());
  if (key.empty() || !growth.contains(key) || !growth[key].is_number()) return std::nullopt;
  return growth[key].get<double>();
}

/// "softmax 1.99 (claimed 2); …": fits over the cells that are large enough, where there are
/// enough.
std::string fits_of(const Panel& panel) {
  std::string text;
  for (const auto& [name, cells] : neighbours_of(panel)) {
    const auto claim = claim_of(panel, *cells.front()->cell);
    if (!claim) continue;
    std::vector<result::GrowthPoint> points;
    for (const Placed* placed : cells) {
      points.push_back({placed->x->get<double>(), time_quantity("")(*placed->cell)->value});
    }
    const auto fit = result::fit_growth(result::at_least(points, enough_seconds), *claim);
    if (!fit.measured) continue;
    text.append(text.empty() ? " Fitted over the others: " : "; ").append(name).append(" ");
    text.append(result::exponent_text(*fit.measured)).append(" (claimed ");
    text.append(short_number(*claim)).append(")");
  }
  return text.empty() ? text : text + ".";
}

/// The claimed exponents, each with the labels that claim it.
Json claims_of(const Panel& panel) {
  std::map<double, std::vector<std::string>> labels;
  for (const Placed& placed : panel.cells) {
    const auto claim = claim_of(panel, *placed.cell);
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
  const Json told = Json::array({{{"field", "claim"}, {"title", "exponent"}, {"type", "nominal"}},
                                 {{"field", "by"}, {"title", "of"}, {"type", "nominal"}}});
  const Json plain = {{"value", "#808080"}};
  layers.push_back({{"data", data},
                    {"mark", {{"type", "rule"}, {"strokeDash", {6, 4}}, {"strokeWidth", 1.5}}},
                    {"encoding", {{"x", nullptr}, {"y", y}, {"color", plain}, {"tooltip", told}}}});
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
                      {"tooltip", told}}}});
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

std::optional<Figure> slopes_figure(const Panel& panel, const std::vector<std::string>& order) {
  Json rows = Json::array();
  for (const auto& [name, cells] : neighbours_of(panel)) {
    for (std::size_t i = 1; i < cells.size(); ++i) {
      if (*cells[i - 1]->x != *cells[i]->x) rows.push_back(row_of(*cells[i - 1], *cells[i]));
    }
  }
  if (rows.empty()) return std::nullopt;
  const Json claims = claims_of(panel);
  const Json y = {{"field", "y"},
                  {"type", "quantitative"},
                  {"title", "growth exponent of the time"},
                  {"scale", {{"domain", domain_of(rows, claims)}, {"nice", false}}},
                  {"axis", {{"format", ".1f"}}}};
  Json range = y;
  range["field"] = "low";
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
                      {"shape", shape_encoding(panel.series, order)},
                      {"opacity", opacity(1, 0.25)},
                      {"tooltip", tooltip({{"series", "label"},
                                           {"said", "exponent"},
                                           {"between", "interval"},
                                           {"where", "between"}})}}}});
  Figure figure =
      framed(panel, "slopes", "Local growth of the time along the axis",
             "Each point is the power by which the time grows between two neighbours; dashed, what "
             "is claimed. Faint: cells under 5 ms, whose constant costs still count." +
                 fits_of(panel),
             order, std::move(layers));
  figure.spec["data"] = {{"name", "measured"}, {"values", rows}};
  // A cell without a time has no slope to miss: its mark belongs into the figure of the times.
  figure.spec["layer"].erase(figure.spec["layer"].begin() + 1, figure.spec["layer"].end());
  return figure;
}

}  // namespace attnbench::reports
