#include "reports/training/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/result/record.hpp"
#include "core/text/format.hpp"
#include "reports/figures/spec.hpp"
#include "reports/training/frame.hpp"
#include "reports/training/rows.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Rate;
using result::Selection;
using Order = std::vector<std::string>;

/// A dotted line through the diamonds of each series.
void join_reach(Json& rows) {
  if (rows.empty() || rows.back()["kind"] != "reach") return;
  const Json row = rows.back();
  const std::string series = row["series"];
  rows.push_back(predicted_row(series, series, row["x"], row["y"].get<double>(),
                               row["said"].get<std::string>()));
}

/// What a line over something else than the axis joins: the trainings of one place on it.
std::string line_of(const Selection& selection) {
  return selection.series + (selection.x ? " " + result::human_value(*selection.x) : "");
}

bool has_words(const Panel& panel) {
  const std::vector<const Json*> values = result::axis_values(panel);
  return std::any_of(values.begin(), values.end(),
                     [](const Json* value) { return value->is_string(); });
}

/// A line for each training: `y` of its curve's points over their `x`, in words of `words`. Points
/// without `x` are left out, and on a logarithmic axis those of 0.
void add_curves(Sketch& sketch, const Panel& panel, const char* x, const char* y, bool logarithmic,
                std::string (*words)(double)) {
  for (const Selection& selection : result::selections(panel)) {
    for (const Json* cell : selection.choice().cells) {
      for (const Json& point : (*cell)["training"]["curve"]) {
        const double value = point[y].get<double>();
        if (!point.contains(x) || (logarithmic && value <= 0)) continue;
        Json dot = row_of(*cell, selection.series, "dot", point[x], value);
        dot["said"] = words(value);
        dot["loss"] = share_words(point["loss"].get<double>());
        dot["train"] = share_words(point["train_accuracy"].get<double>());
        add_joined(sketch.rows, std::move(dot), (*cell)["id"]);
      }
    }
  }
}

std::string number_words(double value) { return result::human_value(value); }

}  // namespace

std::optional<Figure> accuracy_figure(const Panel& panel, const Order& order,
                                      const std::vector<PublishedRow>& published) {
  if (panel.axis == result::state_bytes) return std::nullopt;  // a figure of its own
  const bool along = result::axis_values(panel).size() > 1;
  const bool joined = along && !has_words(panel);  // between words there is nothing
  Sketch sketch;
  sketch.what = "accuracy";
  sketch.title = "Accuracy on the test";
  sketch.caption = chosen_words;
  sketch.y = "accuracy on the test";
  sketch.columns = tooltip_columns("accuracy");
  if (joined) sketch.published = published_accuracies(published, panel, panel.axis);
  std::vector<double> further;
  for (const Published& number : sketch.published) further.push_back(number.x);
  sketch.x = along ? x_encoding(panel, further)
                   : Json{{"field", "x"},
                          {"type", "nominal"},
                          {"title", nullptr},
                          {"sort", panel.series},
                          {"axis", {{"labelAngle", 0}, {"labelLimit", 120}}}};
  add_levels(sketch.layers, panel);
  const std::vector<Selection> selected = result::selections(panel);
  for (const Selection& selection : selected) {
    const Json x = along && selection.x ? *selection.x : Json(selection.series);
    if (along && !selection.x) continue;
    if (joined) sketch.rows.push_back(mean_row(selection.series, x, selection.choice().accuracy));
    for (const Json* cell : selection.choice().cells) {
      sketch.rows.push_back(row_of(*cell, selection.series, "dot", x, metric(*cell, "accuracy")));
    }
    add_reach(sketch.rows, selection, x);
    if (joined) join_reach(sketch.rows);
  }
  if (along && !sketch.rows.empty()) add_chances(sketch.rows, panel);
  if (any_of_kind(sketch.rows, "chance")) sketch.caption += " Grey ticks: chance.";
  sketch.caption += reach_words(selected);
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
  sketch.columns = tooltip_columns("validation accuracy");
  sketch.x = logarithmic("learning rate", 10, "~g");
  const std::vector<Selection> selected = result::selections(panel);
  const bool several = std::any_of(selected.begin(), selected.end(),
                                   [](const Selection& one) { return one.rates.size() > 1; });
  if (!several) return std::nullopt;  // nothing was chosen
  for (const Selection& selection : selected) {
    for (const Rate& rate : selection.rates) {
      if (rate.cells.empty()) continue;
      sketch.rows.push_back(mean_row(selection.series, rate.learning_rate, rate.validation_accuracy,
                                     line_of(selection)));
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
  sketch.columns = tooltip_columns("accuracy");
  sketch.columns.emplace_back("count", "questions");
  sketch.x = logarithmic("distance to the answer, at most (tokens)", 2, ",~r");
  for (const Selection& selection : result::selections(panel)) {
    std::map<double, std::pair<double, double>> bins;
    for (const Json* cell : selection.choice().cells) {
      const result::LookBack back = result::training_of(*cell)->look_back;
      for (std::size_t i = 0; i < back.distances.size(); ++i) {
        const double distance = std::max(1.0, back.distances[i]);
        auto& [questions, right] = bins[std::exp2(std::ceil(std::log2(distance)))];
        questions += back.questions[i];
        right += back.right[i];
      }
    }
    for (const auto& [distance, counts] : bins) {
      Json dot = row_of(*selection.choice().cells.front(), selection.series, "dot", distance,
                        counts.second / counts.first);
      dot["count"] = result::human_count(counts.first);
      add_joined(sketch.rows, std::move(dot), line_of(selection));
    }
  }
  return sketched(panel, order, std::move(sketch));
}

std::optional<Figure> learning_curves_figure(const Panel& panel, const Order& order) {
  Sketch sketch;
  sketch.what = "learning_curves";
  sketch.title = "Learning curves";
  sketch.caption = "Every seed at the learning rate with the best mean validation accuracy.";
  sketch.y = "accuracy on the validation split";
  sketch.columns = tooltip_columns("validation accuracy");
  sketch.columns.emplace_back("loss", "loss of the epoch");
  sketch.columns.emplace_back("train", "accuracy while learning");
  sketch.x = {{"field", "x"},
              {"type", "quantitative"},
              {"title", "epochs"},
              {"axis", {{"tickMinStep", 1}, {"grid", false}}}};
  add_curves(sketch, panel, "epoch", "validation_accuracy", /*logarithmic=*/false, share_words);
  return sketched(panel, order, std::move(sketch));
}

std::optional<Figure> loss_curves_figure(const Panel& panel, const Order& order) {
  Sketch sketch;
  sketch.what = "loss_curves";
  sketch.title = "Loss while learning";
  sketch.caption =
      "Cross-entropy, the mean over the steps of an epoch, of every seed at the learning rate with "
      "the best mean validation accuracy.";
  sketch.y = "loss (nats)";
  sketch.columns = tooltip_columns("loss");
  sketch.columns.emplace_back("train", "accuracy while learning");
  sketch.x = {{"field", "x"},
              {"type", "quantitative"},
              {"title", "steps"},
              {"axis", {{"format", ",.12~g"}, {"grid", false}, {"labelOverlap", "greedy"}}}};
  add_curves(sketch, panel, "step", "loss", /*logarithmic=*/true, number_words);
  std::vector<double> losses;
  for (const Json& row : sketch.rows) losses.push_back(row["y"].get<double>());
  if (losses.empty()) return std::nullopt;
  sketch.y_encoding = {{"scale", {{"type", "log"}, {"nice", false}, {"padding", 8}}},
                       {"axis", {{"format", "~g"}, {"values", decade_ticks(losses)}}}};
  return sketched(panel, order, std::move(sketch));
}

}  // namespace attnbench::reports
