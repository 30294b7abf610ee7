#include "harness/result/format.hpp"
#include "reports/training.hpp"
#include "reports/training_frame.hpp"

namespace attnbench::reports {

using result::Panel;
using result::Selection;
using Order = std::vector<std::string>;

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
  for (const Selection& selection : result::selections(panel)) {
    for (const Json* cell : selection.choice().cells) {
      for (const Json& point : (*cell)["training"]["curve"]) {
        const double y = point["validation_accuracy"].get<double>();
        Json dot = row_of(*cell, selection.series, "dot", point["epoch"], y);
        dot["loss"] = share_words(point["loss"].get<double>());
        dot["train"] = share_words(point["train_accuracy"].get<double>());
        Json mean = mean_row(selection.series, point["epoch"], y);
        mean["id"] = (*cell)["id"];
        sketch.rows.push_back(std::move(dot));
        sketch.rows.push_back(std::move(mean));
      }
    }
  }
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
              {"axis", {{"format", "~s"}, {"grid", false}}}};
  for (const Selection& selection : result::selections(panel)) {
    for (const Json* cell : selection.choice().cells) {
      for (const Json& point : (*cell)["training"]["curve"]) {
        const double y = point["loss"].get<double>();
        if (y <= 0 || !point.contains("step")) continue;  // a logarithm of it there is none
        Json dot = row_of(*cell, selection.series, "dot", point["step"], y);
        dot["said"] = result::human_value(y);
        dot["train"] = share_words(point["train_accuracy"].get<double>());
        Json mean = mean_row(selection.series, point["step"], y);
        mean["id"] = (*cell)["id"];
        sketch.rows.push_back(std::move(dot));
        sketch.rows.push_back(std::move(mean));
      }
    }
  }
  sketch.y_encoding = {{"scale", {{"type", "log"}, {"nice", false}, {"padding", 8}}},
                       {"axis", {{"format", "~g"}}}};
  return sketched(panel, order, std::move(sketch));
}

}  // namespace attnbench::reports
