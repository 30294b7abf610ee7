#include "reports/training.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/result/format.hpp"
#include "reports/points.hpp"
#include "reports/spec.hpp"
#include "reports/training_frame.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Rate;
using result::Selection;
using Order = std::vector<std::string>;

const char* const chosen_words =
    "Dots: every seed, at the learning rate with the best mean validation accuracy.";

Json logarithmic(const char* title, double base, const char* format) {
  return {{"field", "x"},
          {"type", "quantitative"},
          {"title", title},
          {"scale", {{"type", "log"}, {"base", base}, {"nice", false}, {"padding", 16}}},
          {"axis", {{"format", format}, {"grid", false}, {"labelOverlap", "greedy"}}}};
}

/// The level of guessing, where all trainings share it.
void add_levels(Json& layers, const Panel& panel) {
  std::map<std::string, std::set<double>> levels;
  for (const result::Placed& placed : panel.cells) {
    if (!placed.cell->contains("training")) continue;
    for (const char* name : {"guess", "chance"}) {
      const double level = (*placed.cell)["training"].value(name, 0.0);
      if (level > 0) levels[name].insert(level);
    }
  }
  if (levels["guess"].size() == 1) {
    layers.push_back(level_line(*levels["guess"].begin(), "guessing among the sequence's values"));
  }
  if (levels["chance"].size() == 1 && *levels["chance"].begin() > 0.01) {
    layers.push_back(level_line(*levels["chance"].begin(), "chance"));
  }
}

/// What one look-up into the window reaches, beside the trained window.
void add_reach(Json& rows, const Selection& selection, const Json& x) {
  const Json& cell = *selection.choice().cells.front();
  const double reach = cell["training"].value("reach", 0.0);
  if (reach > 0) rows.push_back(row_of(cell, selection.series, "reach", x, reach));
}

/// What guessing reaches, at each place of its own, where the places differ in it.
void add_chances(Json& rows, const Panel& panel) {
  std::map<std::string, std::pair<Json, double>> chances;
  std::set<double> different;
  for (const result::Placed& placed : panel.cells) {
    if (!placed.x || !placed.cell->contains("training")) continue;
    const double level = (*placed.cell)["training"].value("chance", 0.0);
    chances[placed.x->dump()] = {*placed.x, level};
    different.insert(level);
  }
  if (different.size() < 2) return;
  for (const auto& [key, place] : chances) {
    rows.push_back({{"kind", "chance"}, {"x", place.first}, {"y", place.second}});
  }
}

bool has_words(const Panel& panel) {
  const std::vector<const Json*> values = result::axis_values(panel);
  return std::any_of(values.begin(), values.end(),
                     [](const Json* value) { return value->is_string(); });
}

const char* const reach_words =
    " Hollow diamonds: what one look-up into the window reaches, computed from the test, not "
    "trained.";

bool has_state(const Selection& selection) {
  const Json& metrics = (*selection.choice().cells.front())["metrics"];
  return metrics.contains("state_bytes") && metrics["state_bytes"].is_number();
}

/// Points that nothing with less (or equal) state reaches, by state.
std::vector<std::pair<double, double>> front_of(std::vector<std::pair<double, double>> points) {
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::vector<std::pair<double, double>> front;
  for (const auto& point : points) {
    if (front.empty() || point.second > front.back().second) front.push_back(point);
  }
  return front;
}

}  // namespace

std::optional<Figure> accuracy_figure(const Panel& panel, const Order& order) {
  const bool along = result::axis_values(panel).size() > 1;
  const bool joined = along && !has_words(panel);  // between words there is nothing
  Sketch sketch;
  sketch.what = "accuracy";
  sketch.title = "Accuracy on the test";
  sketch.caption = chosen_words;
  sketch.y = "accuracy on the test";
  sketch.told = told_of("accuracy");
  sketch.x = along ? x_encoding(panel)
                   : Json{{"field", "x"},
                          {"type", "nominal"},
                          {"title", nullptr},
                          {"sort", panel.series},
                          {"axis", {{"labelAngle", 0}, {"labelLimit", 120}}}};
  add_levels(sketch.layers, panel);
  for (const Selection& selection : result::selections(panel)) {
    const Json x = along && selection.x ? *selection.x : Json(selection.series);
    if (along && !selection.x) continue;
    if (joined) sketch.rows.push_back(mean_row(selection.series, x, selection.choice().accuracy));
    for (const Json* cell : selection.choice().cells) {
      sketch.rows.push_back(row_of(*cell, selection.series, "dot", x, metric(*cell, "accuracy")));
    }
    add_reach(sketch.rows, selection, x);
  }
  if (along && !sketch.rows.empty()) add_chances(sketch.rows, panel);
  if (any_of_kind(sketch.rows, "chance")) sketch.caption += " Grey ticks: chance.";
  if (any_of_kind(sketch.rows, "reach")) sketch.caption += reach_words;
  return sketched(panel, order, std::move(sketch));
}

std::optional<Figure> accuracy_over_state_figure(const Panel& panel, const Order& order) {
  constexpr double kibi = 1024;
  Sketch sketch;
  sketch.what = "accuracy_over_state";
  sketch.title = "Accuracy on the test against the bytes of the state";
  sketch.caption = std::string(chosen_words) +
                   " Dashed steps: the front, which nothing with as little state betters.";
  sketch.y = "accuracy on the test";
  sketch.told = told_of("accuracy");
  sketch.told.insert(sketch.told.begin() + 2, {"state", "state"});
  sketch.x = logarithmic("state of one sequence after the longest length (KiB)", 2, ",~r");
  std::vector<std::pair<double, double>> means;
  for (const Selection& selection : result::selections(panel)) {
    if (!has_state(selection)) continue;
    const double bytes = metric(*selection.choice().cells.front(), "state_bytes");
    means.emplace_back(bytes / kibi, selection.choice().accuracy);
    for (const Json* cell : selection.choice().cells) {
      Json row = row_of(*cell, selection.series, "dot", bytes / kibi, metric(*cell, "accuracy"));
      row["state"] = result::human_bytes(bytes);
      sketch.rows.push_back(std::move(row));
    }
    add_reach(sketch.rows, selection, bytes / kibi);
  }
  add_levels(sketch.layers, panel);
  if (means.size() > 1) {
    for (const auto& [bytes, accuracy] : front_of(means)) {
      sketch.rows.push_back({{"kind", "front"}, {"x", bytes}, {"y", accuracy}});
    }
  }
  if (any_of_kind(sketch.rows, "reach")) sketch.caption += reach_words;
  return sketched(panel, order, std::move(sketch));
}

std::optional<Figure> accuracy_over_rate_figure(const Panel& panel, const Order& order) {
  Sketch sketch;
  sketch.what = "accuracy_over_learning_rate";
  sketch.title = "Validation accuracy against the learning rate";
  sketch.caption =
      "Dots: every seed; lines: their mean, whose greatest value chooses the learning rate. A "
      "choice at the edge may have a better one beyond it.";
  sketch.y = "accuracy on the validation split";
  sketch.told = told_of("validation accuracy");
  sketch.x = logarithmic("learning rate", 10, "~g");
  for (const Selection& selection : result::selections(panel)) {
    std::string line = selection.series;
    if (selection.x) line += " " + result::human_value(*selection.x);
    for (const Rate& rate : selection.rates) {
      if (rate.cells.empty()) continue;
      Json mean = mean_row(selection.series, rate.learning_rate, rate.validation_accuracy);
      mean["id"] = line;
      sketch.rows.push_back(std::move(mean));
      for (const Json* cell : rate.cells) {
        sketch.rows.push_back(row_of(*cell, selection.series, "dot", rate.learning_rate,
                                     metric(*cell, "validation_accuracy")));
      }
    }
  }
  return sketched(panel, order, std::move(sketch));
}

std::optional<Figure> look_back_figure(const Panel& panel, const Order& order) {
  Sketch sketch;
  sketch.what = "accuracy_by_look_back";
  sketch.title = "Accuracy against how far back the answer stands";
  sketch.caption =
      "Test questions by distance in tokens, in powers of two up to the value shown; all segments "
      "and seeds together, at the chosen learning rate.";
  sketch.y = "accuracy on the test";
  sketch.told = told_of("accuracy");
  sketch.told.emplace_back("count", "questions");
  sketch.x = logarithmic("distance to the answer, at most (tokens)", 2, ",~r");
  for (const Selection& selection : result::selections(panel)) {
    std::map<double, std::pair<double, double>> bins;
    for (const Json* cell : selection.choice().cells) {
      const Json& back = (*cell)["training"]["look_back"];
      for (std::size_t i = 0; i < back["distances"].size(); ++i) {
        const double distance = std::max(1.0, back["distances"][i].get<double>());
        auto& [questions, right] = bins[std::exp2(std::ceil(std::log2(distance)))];
        questions += back["questions"][i].get<double>();
        right += back["right"][i].get<double>();
      }
    }
    std::string line = selection.series;
    if (selection.x) line += " " + result::human_value(*selection.x);
    for (const auto& [distance, counts] : bins) {
      const double y = counts.second / counts.first;
      Json dot = row_of(*selection.choice().cells.front(), selection.series, "dot", distance, y);
      dot["count"] = result::human_count(counts.first);
      Json mean = mean_row(selection.series, distance, y);
      mean["id"] = line;
      sketch.rows.push_back(std::move(dot));
      sketch.rows.push_back(std::move(mean));
    }
  }
  return sketched(panel, order, std::move(sketch));
}

}  // namespace attnbench::reports
