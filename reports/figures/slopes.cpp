#include "reports/figures/kinds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "core/statistics.hpp"
#include "core/text/format.hpp"
#include "reports/figures/legend.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/spec.hpp"
#include "reports/tables/conditions.hpp"
#include "reports/tables/panel_growth.hpp"

namespace attnbench::reports {
namespace {

/// A value with its bounds; workspace has none.
std::optional<PlottedValue> measured(const CellRecord& cell, GrownQuantity what) {
  return what == GrownQuantity::time
             ? time_quantity("")(cell)
             : number_quantity(&CellRecord::memory, "workspace_bytes")(cell);
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

/// The slope between two neighbours, with the steepest and the flattest line that the two intervals
/// allow.
struct Slope {
  const Placed* from;
  const Placed* to;
  double x;  ///< in the middle, in logarithms
  double value;
  double low;
  double high;
  bool large;  ///< cells of at least `enough_seconds`

  Json row() const;
};

/// A claimed exponent and the labels that claim it.
struct Claim {
  double exponent;
  std::string labels;

  Json row() const {
    return {{"y", exponent}, {"claim", "claimed " + short_number(exponent)}, {"by", labels}};
  }
};

template <class Of>
Json slope_rows(const std::vector<Of>& all) {
  Json rows = Json::array();
  for (const Of& one : all) rows.push_back(one.row());
  return rows;
}

/// From 0 (or the least slope) to a little above the greatest of all exponents. Bars of noisy cells
/// are cut at the frame rather than squeeze what is to be read.
Json domain_of(const std::vector<Slope>& slopes, const std::vector<Claim>& claims) {
  double low = 0;
  double high = 1;
  for (const Slope& slope : slopes) {
    low = std::min(low, slope.value);
    high = std::max(high, slope.value);
  }
  for (const Claim& claim : claims) high = std::max(high, claim.exponent);
  return {std::floor(low * 5) / 5, std::ceil(high * 5 + 0.5) / 5};
}

/// Cells of each series with a positive value at a positive place on the axis, ascending.
std::map<std::string, std::vector<const Placed*>> neighbours_of(const Panel& panel,
                                                                GrownQuantity what) {
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

Slope slope_of(const Placed& from, const Placed& to, GrownQuantity what) {
  const double x0 = from.x->get<double>();
  const double x1 = to.x->get<double>();
  const PlottedValue low = *measured(*from.cell, what);
  const PlottedValue high = *measured(*to.cell, what);
  return {
      &from,
      &to,
      std::sqrt(x0 * x1),
      growth_exponent({x0, x1}, {low.value, high.value}),
      growth_exponent({x0, x1}, {low.high, high.low}),
      growth_exponent({x0, x1}, {low.low, high.high}),
      what != GrownQuantity::time || (low.value >= enough_seconds && high.value >= enough_seconds)};
}

Json Slope::row() const {
  const std::string where = text::human_value(*from->x) + " to " + text::human_value(*to->x);
  Json row = provenance_row(*to->cell);
  row.update({{"series", from->series},
              {"x", x},
              {"y", value},
              {"low", low},
              {"high", high},
              {"said", exponent_text(value)},
              {"between", exponent_text(low) + " to " + exponent_text(high)},
              {"where", where},
              {"length", where},
              {"large", large}});
  return row;
}

/// "softmax 1.99 (claimed 2: held); …", where there are enough cells to fit.
std::string fits_of(const Panel& panel, GrownQuantity what) {
  std::string text;
  for (const PanelGrowth& grown : panel_growth(panel, what)) {
    if (!grown.fit.measured) continue;
    text.append(text.empty() ? " Fitted: " : "; ").append(grown.series).append(" ");
    text.append(exponent_text(*grown.fit.measured));
    if (!grown.claimed) continue;
    text.append(" (claimed ").append(short_number(*grown.claimed)).append(": ");
    text.append(grown.word).append(")");
  }
  return text.empty() ? text : text + ".";
}

/// The claimed exponents, each once, with the labels that claim it.
std::vector<Claim> claims_of(const Panel& panel, GrownQuantity what) {
  std::map<double, std::vector<std::string>> labels;
  for (const Placed& placed : panel.cells) {
    const auto claim = claimed_exponent(*placed.cell, what, panel.axis);
    if (!claim) continue;
    std::vector<std::string>& names = labels[*claim];
    if (std::find(names.begin(), names.end(), placed.series) == names.end()) {
      names.push_back(placed.series);
    }
  }
  std::vector<Claim> claims;
  for (const auto& [exponent, names] : labels) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : "; ") + name;
    claims.push_back({exponent, text});
  }
  return claims;
}

void add_claims(Json& layers, const std::vector<Claim>& claims) {
  if (claims.empty()) return;
  const Json data = {{"name", "claims"}, {"values", slope_rows(claims)}};
  const Json y = {{"field", "y"}, {"type", "quantitative"}};
  const Json fields = Json::array({{{"field", "claim"}, {"title", "exponent"}, {"type", "nominal"}},
                                   {{"field", "by"}, {"title", "of"}, {"type", "nominal"}}});
  const Json plain = {{"value", "#808080"}};
  const Json left = {{"value", 0}};
  const Json right = {{"value", "width"}};
  layers.push_back(
      {{"data", data},
       {"mark", {{"type", "rule"}, {"strokeDash", {6, 4}}, {"strokeWidth", 1.5}}},
       {"encoding",
        {{"x", left}, {"x2", right}, {"y", y}, {"color", plain}, {"tooltip", fields}}}});
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

std::optional<Figure> slopes_figure(const Panel& panel, const Palette& palette,
                                    GrownQuantity what) {
  const auto neighbours = neighbours_of(panel, what);
  std::vector<Slope> slopes;
  std::set<std::string> shown;
  for (const auto& [name, cells] : neighbours) {
    for (std::size_t i = 1; i < cells.size(); ++i) {
      if (*cells[i - 1]->x == *cells[i]->x) continue;
      slopes.push_back(slope_of(*cells[i - 1], *cells[i], what));
      shown.insert(name);
    }
  }
  if (slopes.empty()) return std::nullopt;
  const bool time = what == GrownQuantity::time;
  const std::string quantity = time ? "time" : "workspace";
  const std::vector<Claim> claims = claims_of(panel, what);
  const Json y = {{"field", "y"},
                  {"type", "quantitative"},
                  {"title", "growth exponent of the " + quantity},
                  {"scale", {{"domain", domain_of(slopes, claims)}, {"nice", false}}},
                  {"axis", {{"format", ".1f"}}}};
  const Json range = with_field(y, "low");
  const Panel drawn = with_series(panel, shown);
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
                      {"shape", shape_encoding(drawn.series, palette)},
                      {"opacity", opacity(1, 0.25)},
                      {"tooltip", tooltip({{"series", "label"},
                                           {"said", "exponent"},
                                           {"between", "interval"},
                                           {"where", "between"}})}}}});
  const std::string caption =
      "Each point is the power by which the " + quantity + " grows between two neighbours" +
      (claims.empty() ? "." : "; dashed, what is claimed.") +
      (time ? " Faint: cells under 5 ms, whose constant costs still count." : "") +
      fits_of(panel, what) + (time ? disturbed_words(panel) : "") + not_drawn_words(panel, shown);
  // A cell without a time has no slope to miss: its mark belongs into the figure of the times.
  return framed({.what = time ? "slopes" : "memory_slopes",
                 .title = "Local growth of the " + quantity + " along the axis",
                 .caption = caption,
                 .grouping = Grouping::alone,
                 .rows = slope_rows(slopes),
                 .layers = std::move(layers)},
                drawn, palette);
}

}  // namespace attnbench::reports
