#include "reports/training/rows.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>

#include "core/result/record.hpp"
#include "core/text/format.hpp"
#include "reports/figures/points.hpp"
#include "reports/tables/selection.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Selection;

/// A dashed line over the whole width at `y`, with what it is.
Json level_line(double y, const std::string& what) {
  const Json values = Json::array({{{"y", y}, {"what", what}}});
  const Json place = {{"field", "y"}, {"type", "quantitative"}};
  const Json grey = {{"value", "#888888"}};
  const Json line = {
      {"mark", {{"type", "rule"}, {"strokeDash", {2, 3}}}},
      {"encoding",
       {{"y", place}, {"x", {{"value", 0}}}, {"x2", {{"value", "width"}}}, {"color", grey}}}};
  const Json words = {
      {"mark", {{"type", "text"}, {"align", "right"}, {"dy", -5}, {"fontSize", 10}}},
      {"encoding",
       {{"y", place},
        {"x", {{"value", "width"}}},
        {"text", {{"field", "what"}}},
        {"color", grey}}}};
  return {{"data", {{"values", values}}}, {"layer", {line, words}}};
}

/// The training that stands for the choice.
result::Training training_of(const Selection& selection) {
  return *result::training_of(*selection.choice().cells.front());
}

}  // namespace

bool any_of_kind(const Json& rows, const std::string& kind) {
  for (const Json& row : rows) {
    if (row["kind"] == kind) return true;
  }
  return false;
}

std::vector<std::pair<std::string, std::string>> tooltip_columns(const char* what) {
  return {{"series", "label"},
          {"said", what},
          {"rate", "learning rate"},
          {"seed", "seed"},
          {"ended", "training"}};
}

std::string share_words(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", share);
  return text.data();
}

double metric(const Json& cell, const char* name) {
  const Json& metrics = cell["metrics"];
  return metrics.contains(name) && metrics[name].is_number() ? metrics[name].get<double>() : 0;
}

Json row_of(const Json& cell, const std::string& series, const char* kind, const Json& x,
            double y) {
  Json row = provenance_row(cell);
  const auto text = [&](const char* key) {
    const Json* value = result::value_of(cell, key);
    return value ? result::human_value(*value) : std::string("–");
  };
  row.update({{"kind", kind},
              {"series", series},
              {"x", x},
              {"y", y},
              {"said", share_words(y)},
              {"seed", text(result::model_seed)},
              {"rate", text(result::learning_rate)},
              {"ended", result::training_of(cell)->converged ? "converged" : "still growing"}});
  return row;
}

Json predicted_row(const std::string& series, const std::string& id, const Json& x, double y,
                   const std::string& said) {
  return {{"kind", "predicted"}, {"series", series}, {"id", id}, {"x", x}, {"y", y},
          {"said", said}};
}

Json mean_row(const std::string& series, const Json& x, double y, const std::string& line) {
  return {{"kind", "mean"},
          {"series", series},
          {"x", x},
          {"y", y},
          {"id", line.empty() ? series : line}};
}

void add_joined(Json& rows, Json dot, const std::string& line) {
  Json mean = mean_row(dot["series"], dot["x"], dot["y"].get<double>(), line);
  rows.push_back(std::move(dot));
  rows.push_back(std::move(mean));
}

void add_levels(Json& layers, const Panel& panel) {
  std::set<double> guesses;
  std::set<double> chances;
  for (const result::Placed& placed : panel.cells) {
    const auto training = result::training_of(*placed.cell);
    if (training && training->guess > 0) guesses.insert(training->guess);
    if (training && training->chance > 0) chances.insert(training->chance);
  }
  if (guesses.size() == 1) {
    layers.push_back(level_line(*guesses.begin(), "guessing among the sequence's values"));
  }
  if (chances.size() == 1 && *chances.begin() > 0.01) {
    layers.push_back(level_line(*chances.begin(), "chance"));
  }
}

void add_chances(Json& rows, const Panel& panel) {
  std::map<std::string, std::pair<Json, double>> chances;
  std::set<double> different;
  for (const result::Placed& placed : panel.cells) {
    const auto training = placed.x ? result::training_of(*placed.cell) : std::nullopt;
    if (!training) continue;
    chances[placed.x->dump()] = {*placed.x, training->chance};
    different.insert(training->chance);
  }
  if (different.size() < 2) return;
  for (const auto& [key, place] : chances) {
    rows.push_back({{"kind", "chance"}, {"x", place.first}, {"y", place.second}});
  }
}

void add_reach(Json& rows, const Selection& selection, const Json& x) {
  const Json& cell = *selection.choice().cells.front();
  const double reach = training_of(selection).reach.value_or(0);
  if (reach > 0) rows.push_back(row_of(cell, selection.series, "reach", x, reach));
}

void add_reach_line(Json& rows, const Selection& selection, double unit,
                    const std::pair<double, double>& range) {
  const std::optional<result::ReachLine> line = training_of(selection).reach_line;
  if (!line) return;
  // As the record has it: lines of one id are one.
  const std::string id = (*selection.choice().cells.front())["training"]["reach_line"].dump();
  for (const Json& row : rows) {
    if (row["kind"] == "predicted" && row["id"] == id) return;  // another window's, the same line
  }
  constexpr double beyond = 1.2;
  for (std::size_t i = 0; i < line->keys.size(); ++i) {
    const double bytes = line->state_bytes[i];
    if (bytes * beyond < range.first || bytes > range.second * beyond) continue;
    rows.push_back(predicted_row(selection.series, id, bytes / unit, line->reach[i],
                                 share_words(line->reach[i]) + " with a window of " +
                                     std::to_string(line->keys[i]) + " keys"));
  }
}

std::string reach_words(const std::vector<Selection>& selections) {
  bool any = false;
  bool stacked = false;
  for (const Selection& selection : selections) {
    const result::Training training = training_of(selection);
    any = any || training.reach;
    stacked = stacked || training.stacked > 1;
  }
  if (!any) return "";
  return std::string(
             " Hollow diamonds and dotted lines: what one look-up into a window reaches, predicted "
             "from the test's distances and the layers, not trained") +
         (stacked ? "; windows in several blocks may reach farther." : ".");
}

void add_front(Json& rows, std::vector<std::pair<double, double>> points) {
  if (points.size() < 2) return;
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  double best = -1;
  for (const auto& [cost, accuracy] : points) {
    if (accuracy <= best) continue;
    best = accuracy;
    rows.push_back({{"kind", "front"}, {"x", cost}, {"y", accuracy}});
  }
}

}  // namespace attnbench::reports
