#include "reports/training/confusion.hpp"

#include <algorithm>

#include "core/text/format.hpp"
#include "reports/figures/spec.hpp"
#include "reports/tables/classes.hpp"
#include "reports/training/rows.hpp"

namespace attnbench::reports {
namespace {

using Counts = std::vector<std::vector<std::int64_t>>;

/// Sums over all seeds that have as many classes as the first; empty where nothing was classified.
Counts counts_of(const Selection& selection) {
  Counts sum;
  for (const CellRecord* cell : selection.choice().cells) {
    const Counts& own = cell->training->confusion;
    if (sum.empty()) sum.assign(own.size(), std::vector<std::int64_t>(own.size(), 0));
    if (own.size() != sum.size()) continue;
    for (std::size_t i = 0; i < own.size(); ++i) {
      for (std::size_t j = 0; j < std::min(own.size(), own[i].size()); ++j) sum[i][j] += own[i][j];
    }
  }
  return sum;
}

/// A row for each pair of classes.
void add_rows(Json& rows, const std::string& name, const Counts& counts) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    double all = 0;
    for (const std::int64_t count : counts[i]) all += static_cast<double>(count);
    for (std::size_t j = 0; j < counts.size(); ++j) {
      const auto count = static_cast<double>(counts[i][j]);
      const double share = all > 0 ? count / all : 0;
      rows.push_back({{"series", name},
                      {"x", j},
                      {"y", i},
                      {"share", share},
                      {"said", share_words(share)},
                      {"count", text::human_count(count)}});
    }
  }
}

Json place(const char* field, const char* title) {
  return {{"field", field},
          {"type", "ordinal"},
          {"title", title},
          {"axis", {{"labelAngle", 0}, {"ticks", false}, {"domain", false}}}};
}

/// One map: squares coloured by share, and the share in per cent where it is not next to nothing.
Json map_of(std::size_t classes) {
  const Json colour = {{"field", "share"},
                       {"type", "quantitative"},
                       {"title", "share of the true class"},
                       {"scale", {{"scheme", "blues"}, {"domain", {0, 1}}}},
                       {"legend", {{"format", ".1f"}, {"gradientLength", 200}}}};
  const Json words = tooltip({{"series", "label"},
                              {"y", "true class"},
                              {"x", "taken for"},
                              {"said", "share"},
                              {"count", "examples"}});
  const Json tiles = {{"mark", {{"type", "rect"}}},
                      {"encoding", {{"color", colour}, {"tooltip", words}}}};
  const Json numbers = {
      {"transform", Json::array({{{"filter", "datum.share >= 0.005"}}})},
      {"mark", {{"type", "text"}, {"fontSize", classes > 6 ? 8 : 11}}},
      {"encoding",
       {{"text", {{"field", "share"}, {"type", "quantitative"}, {"format", ".0%"}}},
        {"color",
         {{"condition", {{"test", "datum.share > 0.5"}, {"value", "white"}}},
          {"value", "#1b1f24"}}}}}};
  return {{"width", 220},
          {"height", 220},
          {"encoding", {{"x", place("x", "taken for")}, {"y", place("y", "true class")}}},
          {"layer", {tiles, numbers}}};
}

}  // namespace

std::optional<Figure> confusion_figure(const Panel& panel, const Palette& palette) {
  Json rows = Json::array();
  Json names = Json::array();
  std::size_t classes = 0;
  const bool along = axis_values(panel).size() > 1;
  for (const Selection& selection : selections(panel)) {
    const Counts counts = counts_of(selection);
    if (counts.empty()) continue;
    const std::string name =
        selection.series +
        (along && selection.x ? ", " + text::human_value(*selection.x) : std::string());
    names.push_back(name);
    classes = std::max(classes, counts.size());
    add_rows(rows, name, counts);
  }
  if (rows.empty()) return std::nullopt;
  Framing framing;
  framing.what = "confusion";
  framing.title = "What each class was taken for";
  framing.caption =
      "Test examples of each true class by the class that was answered, of all seeds at the chosen "
      "learning rate together; the diagonal is right.";
  framing.x = place("x", "taken for");
  framing.rows = std::move(rows);
  Figure figure = framed_maps(std::move(framing), panel, palette, "series", names, map_of(classes));
  figure.spec["columns"] = 3;
  return figure;
}

}  // namespace attnbench::reports
