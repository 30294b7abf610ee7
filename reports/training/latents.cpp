#include "reports/training/latents.hpp"

#include <algorithm>

#include "core/text/format.hpp"
#include "reports/figures/spec.hpp"
#include "reports/training/rows.hpp"

namespace attnbench::reports {
namespace {

using result::LatentProbabilities;

/// What the maps of a figure share.
struct LatentMaps {
  Json rows = Json::array();
  Json headings = Json::array();
  std::vector<std::string> tokens;  ///< of the longest
  std::size_t states = 0;           ///< of the tallest
  double greatest = 0;
  bool any_window = false;
};

/// The latent probabilities of the first seed that has any; null where none does.
const LatentProbabilities* probabilities_of(const Selection& selection) {
  for (const CellRecord* cell : selection.choice().cells) {
    const auto& found = cell->training->latent_probabilities;
    if (found && !found->probabilities.empty()) return &*found;
  }
  return nullptr;
}

/// A space would not be seen.
std::string visible_token(const std::string& token) { return token == " " ? "·" : token; }

/// "latte: 0.972 of 256 states in use".
std::string heading_of(const std::string& name, const LatentProbabilities& found) {
  double states = 1;
  for (const std::int64_t size : {found.blocks, found.heads, found.states}) {
    states *= static_cast<double>(size);
  }
  return name + ": " + share_words(found.in_use) + " of " + text::human_count(states) +
         " states in use";
}

void add_map(LatentMaps& maps, const std::string& series, const std::string& name,
             const LatentProbabilities& found) {
  const std::string heading = heading_of(name, found);
  maps.headings.push_back(heading);
  maps.any_window |= found.first_state == "window";
  const std::size_t tokens = std::min(found.tokens.size(), found.probabilities.size());
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::string token = visible_token(found.tokens[t]);
    if (t == maps.tokens.size()) maps.tokens.push_back(token);
    const std::vector<double>& states = found.probabilities[t];
    maps.states = std::max(maps.states, states.size());
    for (std::size_t l = 0; l < states.size(); ++l) {
      maps.greatest = std::max(maps.greatest, states[l]);
      const bool window = l == 0 && found.first_state == "window";
      maps.rows.push_back({{"series", series},
                           {"map", heading},
                           {"x", t},
                           {"y", l},
                           {"p", states[l]},
                           {"token", token},
                           {"state", window ? "0, the window" : std::to_string(l)},
                           {"said", share_words(states[l])}});
    }
  }
}

/// Squares coloured by probability; the brighter, the more probable.
Json squares_of(const LatentMaps& maps) {
  const Json bare = {{"labelAngle", 0}, {"ticks", false}, {"domain", false}};
  // The labels are the tokens, which repeat: places along the axis are their numbers.
  Json letters = bare;
  letters.update({{"labelExpr", Json(maps.tokens).dump() + "[datum.value]"},
                  {"labelOverlap", true},
                  {"labelFontSize", 10}});
  const Json x = {{"field", "x"}, {"type", "ordinal"}, {"title", "token"}, {"axis", letters}};
  Json numbers = bare;
  numbers["labelOverlap"] = true;
  const Json y = {{"field", "y"}, {"type", "ordinal"}, {"title", "state l"}, {"axis", numbers}};
  const Json colour = {
      {"field", "p"},
      {"type", "quantitative"},
      {"title", "p(l|t)"},
      {"scale", {{"scheme", "viridis"}, {"domain", {0, maps.greatest > 0 ? maps.greatest : 1}}}},
      {"legend", {{"format", ".2f"}, {"gradientLength", 200}}}};
  const Json words = tooltip(
      {{"series", "label"}, {"token", "token"}, {"state", "state"}, {"said", "probability"}});
  constexpr std::size_t side = 14;
  return {{"width", side * std::clamp<std::size_t>(maps.tokens.size(), 10, 64)},
          {"height", side * std::clamp<std::size_t>(maps.states, 6, 64)},
          {"mark", {{"type", "rect"}}},
          {"encoding", {{"x", x}, {"y", y}, {"color", colour}, {"tooltip", words}}}};
}

}  // namespace

std::optional<Figure> latent_probabilities_figure(const Panel& panel, const Palette& palette) {
  LatentMaps maps;
  const bool along = axis_values(panel).size() > 1;
  for (const Selection& selection : selections(panel)) {
    const LatentProbabilities* const found = probabilities_of(selection);
    if (found == nullptr) continue;
    std::string name = selection.series;
    if (along && selection.x) name += ", " + text::human_value(*selection.x);
    add_map(maps, selection.series, name, *found);
  }
  if (maps.rows.empty()) return std::nullopt;
  Framing framing;
  framing.what = "latent_probabilities";
  framing.title = "How each token is divided among the states";
  framing.caption =
      "p(l|t) of the first bytes of the test (· is a space) and the first states, in the last "
      "block's first head, of the first seed at the chosen learning rate; brighter is more "
      "probable. " +
      std::string(maps.any_window ? "State 0 of a mixture with a window is the window. " : "") +
      "In use is a state of any block and head whose mean over the whole sequence is above half of "
      "the uniform probability.";
  framing.x = {{"field", "x"}, {"type", "ordinal"}};
  framing.rows = std::move(maps.rows);
  Figure figure =
      framed_maps(std::move(framing), panel, palette, "map", maps.headings, squares_of(maps));
  figure.spec["columns"] = 2;
  figure.spec["facet"]["header"]["labelLimit"] = 420;
  return figure;
}

}  // namespace attnbench::reports
