#include "reports/figures/kinds.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include "reports/figures/spec.hpp"
#include "reports/figures/ticks.hpp"

namespace attnbench::reports {
namespace {

/// In the legend's order.
struct VerdictColour {
  const char* verdict;
  const char* words;
  const char* colour;
};
constexpr VerdictColour verdict_colours[] = {{"FAST", "FAST: new is faster", accent_green},
                                             {"SAME", "SAME: within the margin", accent_blue},
                                             {"SLOW", "SLOW: new is slower", accent_orange},
                                             {"UNCLEAR", "UNCLEAR: cannot tell", accent_grey}};

std::string verdict_words(const std::string& verdict) {
  for (const VerdictColour& one : verdict_colours) {
    if (verdict == one.verdict) return one.words;
  }
  return verdict;
}

/// "3", "97.5".
std::string short_percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", share * 100);
  return text.data();
}

/// A logarithmic axis has room for what is finite and above 0 alone.
bool is_drawable(const PairVerdict& pair) {
  if (!pair.ratio) return false;
  const auto usable = [](double ratio) { return std::isfinite(ratio) && ratio > 0; };
  return usable(*pair.ratio) && usable(*pair.ratio_low) && usable(*pair.ratio_high);
}

Json forest_row(const PairVerdict& pair) {
  Json row = {{"pair", pair_name(pair)},
              {"ratio", *pair.ratio},
              {"low", *pair.ratio_low},
              {"high", *pair.ratio_high},
              {"verdict", verdict_words(pair.verdict)},
              {"said", ratio_words(pair)},
              {"rounds", rounds_words(pair)},
              {"reason", pair.reason.empty() ? "–" : pair.reason}};
  if (pair.control && pair.control->ratio_low > 0) {
    row.update({{"again_low", pair.control->ratio_low}, {"again_high", pair.control->ratio_high}});
  }
  return row;
}

struct Forest {
  Json rows = Json::array();
  std::vector<std::string> names;
  std::set<std::string> verdicts;
  std::vector<double> ratios{1};  ///< all that the axis has to hold
  std::string not_drawn;
  bool again = false;  ///< any pair has the base against itself
};

Forest forest_of(const Verdicts& verdicts) {
  Forest forest;
  for (const PairVerdict& pair : verdicts.pairs) {
    if (!is_drawable(pair)) {
      forest.not_drawn +=
          (forest.not_drawn.empty() ? " Without a ratio, and so not here: " : "; ") +
          pair_name(pair);
      continue;
    }
    Json row = forest_row(pair);
    forest.again = forest.again || row.contains("again_low");
    for (const char* bound : {"low", "high", "again_low", "again_high"}) {
      if (row.contains(bound)) forest.ratios.push_back(row[bound].get<double>());
    }
    forest.names.push_back(pair_name(pair));
    forest.verdicts.insert(verdict_words(pair.verdict));
    forest.rows.push_back(std::move(row));
  }
  return forest;
}

/// At least ten percent to each side, so that a narrow interval looks narrow.
Json ratio_domain(const std::vector<double>& ratios) {
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return {std::min(*least, 1 / 1.1), std::max(*most, 1.1)};
}

Json ratio_ticks(const Json& domain) {
  const double low = domain[0];
  const double high = domain[1];
  if (high / low > 4) return decade_ticks({low, high});
  Json ticks = Json::array();
  const double step = high / low > 2 ? 0.25 : high / low > 1.4 ? 0.1 : 0.05;
  const long first = std::lround(std::ceil(low / step));
  for (long i = first; static_cast<double>(i) * step <= high; ++i) {
    ticks.push_back(static_cast<double>(std::lround(static_cast<double>(i) * step * 100)) / 100);
  }
  return ticks;
}

Json colours_of(const std::set<std::string>& present) {
  Json domain = Json::array();
  Json range = Json::array();
  for (const VerdictColour& one : verdict_colours) {
    if (!present.contains(one.words)) continue;
    domain.push_back(one.words);
    range.push_back(one.colour);
  }
  return {{"field", "verdict"},
          {"type", "nominal"},
          {"title", nullptr},
          {"scale", {{"domain", domain}, {"range", range}}}};
}

/// A vertical rule, or a band, that belongs to no pair.
Json unit_layer(const Json& x, Json mark, Json row) {
  Json encoding = {{"x", with_field(x, "from")}};
  if (row.contains("to")) encoding.update({{"x2", {{"field", "to"}}}});
  return {{"data", {{"values", Json::array({std::move(row)})}}},
          {"mark", std::move(mark)},
          {"encoding", std::move(encoding)}};
}

Json forest_layers(const Forest& forest, const std::optional<double>& margin, const Json& x) {
  const Json y = {{"field", "pair"},
                  {"type", "nominal"},
                  {"title", nullptr},
                  {"sort", forest.names},
                  {"axis", {{"domain", false}, {"ticks", false}}}};
  Json layers = Json::array();
  if (margin && *margin > 0) {
    layers.push_back(unit_layer(x, {{"type", "rect"}, {"color", "#888888"}, {"opacity", 0.15}},
                                {{"from", 1 / (1 + *margin)}, {"to", 1 + *margin}}));
  }
  layers.push_back(unit_layer(x, {{"type", "rule"}, {"color", "#888888"}}, {{"from", 1}}));
  if (forest.again) {
    layers.push_back(
        {{"mark", {{"type", "rule"}, {"color", "#888888"}, {"yOffset", 7}}},
         {"encoding",
          {{"x", with_field(x, "again_low")}, {"x2", {{"field", "again_high"}}}, {"y", y}}}});
  }
  const Json colour = colours_of(forest.verdicts);
  layers.push_back(
      {{"mark", {{"type", "rule"}, {"strokeWidth", 3}}},
       {"encoding",
        {{"x", with_field(x, "low")}, {"x2", {{"field", "high"}}}, {"y", y}, {"color", colour}}}});
  Json fields = Json::array();
  for (const auto& [field, title] : {std::pair{"pair", "pair"},
                                     {"verdict", "verdict"},
                                     {"said", "new / base"},
                                     {"rounds", "rounds"},
                                     {"reason", "reason"}}) {
    fields.push_back({{"field", field}, {"title", title}, {"type", "nominal"}});
  }
  layers.push_back({{"mark", {{"type", "point"}, {"filled", true}, {"size", 90}, {"opacity", 1}}},
                    {"encoding", {{"x", x}, {"y", y}, {"color", colour}, {"tooltip", fields}}}});
  return layers;
}

std::string forest_caption(const Forest& forest, const VerdictSides& sides) {
  const std::optional<double>& margin = sides.margin;
  std::string caption =
      "Left of 1: new is faster. Each point is " +
      std::string(sides.apart.empty() ? "the median over rounds of the time of new over that of "
                                        "base in the same round; bars: its interval."
                                      : "the median time of new over that of base; bars: the "
                                        "quotients of the bounds of both.");
  if (margin && *margin > 0) {
    caption += " Grey band: the margin of " + short_percent(*margin) + " %.";
  }
  if (forest.again) caption += " Thin grey bars: the base against itself.";
  return caption + forest.not_drawn + (forest.not_drawn.empty() ? "" : ".");
}

}  // namespace

std::optional<Figure> forest_figure(const Verdicts& verdicts) {
  const Forest forest = forest_of(verdicts);
  if (forest.rows.empty()) return std::nullopt;
  const Json domain = ratio_domain(forest.ratios);
  const Json x = {
      {"field", "ratio"},
      {"type", "quantitative"},
      {"title", "time of new / time of base"},
      {"scale", {{"type", "log"}, {"nice", false}, {"padding", 12}, {"domain", domain}}},
      {"axis", {{"format", ".12~g"}, {"values", ratio_ticks(domain)}, {"labelOverlap", "greedy"}}}};
  Figure figure;
  figure.name = verdicts.turns.apart.empty() ? "ab_ratios" : "side_by_side_ratios";
  figure.title = "Time of " + verdicts.turns.changed + " over that of " + verdicts.turns.base;
  figure.subtitle = "Left of 1: new is faster.";
  if (verdicts.turns.confidence) {
    figure.subtitle +=
        " Intervals: " + short_percent(*verdicts.turns.confidence) + " %, all pairs together 95 %.";
  }
  figure.caption = forest_caption(forest, verdicts.turns);
  figure.spec = bare_spec(figure, forest.rows);
  fill_width(figure.spec, Json{{"step", 30}});
  figure.spec["layer"] = forest_layers(forest, verdicts.turns.margin, x);
  figure.spec["config"]["legend"]["columns"] = 2;  // names take the left of the picture
  figure.spec["config"]["axisY"] = {{"labelLimit", 300}};
  return figure;
}

}  // namespace attnbench::reports
