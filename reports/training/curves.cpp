#include "reports/training/curves.hpp"

#include "core/text/format.hpp"
#include "reports/figures/spec.hpp"
#include "reports/training/frame.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Selection;
using Order = std::vector<std::string>;

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

std::optional<Figure> learning_curves_figure(const Panel& panel, const Order& order) {
  Sketch sketch;
  sketch.what = "learning_curves";
  sketch.title = "Learning curves";
  sketch.caption = "Every seed at the learning rate with the best mean validation accuracy.";
  sketch.y = "accuracy on the validation split";
  sketch.told = told_of("validation accuracy");
  sketch.told.emplace_back("loss", "loss of the epoch");
  sketch.told.emplace_back("train", "accuracy while learning");
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
  sketch.told = told_of("loss");
  sketch.told.emplace_back("train", "accuracy while learning");
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
