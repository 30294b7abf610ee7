#include "reports/training/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text/format.hpp"
#include "reports/figures/spec.hpp"
#include "reports/figures/ticks.hpp"
#include "reports/training/frame.hpp"
#include "reports/training/rows.hpp"

namespace attnbench::reports {
namespace {

/// A dotted line through the diamonds of each series.
void join_reach(TrainingRows& rows) {
  if (rows.empty() || rows.back().kind != "reach") return;
  const TrainingRow row = rows.back();
  rows.push_back(predicted_row(row.series, row.series, row.x, row.y, share_words(row.y)));
}

/// What a line over something else than the axis joins: the trainings of one place on it.
std::string line_of(const Selection& selection) {
  return selection.series + (selection.x ? " " + text::human_value(*selection.x) : "");
}

bool has_words(const Panel& panel) {
  const std::vector<Json> values = axis_values(panel);
  return std::any_of(values.begin(), values.end(),
                     [](const Json& value) { return value.is_string(); });
}

/// Where a point of a training's curve stands; nothing where it has no such place.
using PlaceOnCurve = std::optional<std::pair<Json, double>> (*)(const result::CurvePoint& point);

/// A line for each training through the places of its curve's points, which `score` is taken of, in
/// words of `words`.
void add_curves(Sketch& sketch, const Panel& panel, PlaceOnCurve place,
                std::string (*words)(double), double (*score)(double) = nullptr) {
  for (const Selection& selection : selections(panel)) {
    for (const CellRecord* cell : selection.choice().cells) {
      for (const result::CurvePoint& point : cell->training->curve) {
        const auto at = place(point);
        if (!at) continue;
        const double y = score ? score(at->second) : at->second;
        TrainingRow dot = row_of(*cell, selection.series, "dot", at->first, y);
        dot.json.update({{"said", words(y)},
                         {"loss", share_words(point.loss)},
                         {"train", share_words(point.train_accuracy)}});
        add_joined(sketch.rows, std::move(dot), cell->id);
      }
    }
  }
}

std::string number_words(double value) { return text::human_value(value); }

Json steps_encoding() {
  return {{"field", "x"},
          {"type", "quantitative"},
          {"title", "steps"},
          {"axis", {{"format", ",.12~g"}, {"grid", false}, {"labelOverlap", "greedy"}}}};
}

std::string every_seed_words(const Quality& quality) {
  return std::string("Every seed at the learning rate with the ") + quality.selected + ".";
}

/// Where the validation loss of a point stands, in nats.
std::optional<std::pair<Json, double>> loss_over_steps(const result::CurvePoint& point) {
  if (!point.step || !point.validation_loss) return std::nullopt;
  return std::pair<Json, double>(*point.step, *point.validation_loss);
}

/// The angle of the names below an axis: horizontal where they fit side by side.
int name_angle(const Panel& panel) {
  constexpr std::size_t letters_across = 75;  // characters that fit at the minimum width
  std::size_t longest = 0;
  for (const std::string& name : panel.series) longest = std::max(longest, name.size());
  return (longest + 1) * panel.series.size() <= letters_across ? 0 : -30;
}

}  // namespace

std::optional<Figure> accuracy_figure(const Panel& panel, const Palette& palette,
                                      const std::vector<PublishedRow>& published) {
  if (panel.axis == state_bytes) return std::nullopt;  // a figure of its own
  const bool along = axis_values(panel).size() > 1;
  const bool joined = along && !has_words(panel);  // between words there is nothing
  const Quality& quality = quality_of(panel);
  Sketch sketch;
  sketch.what = quality.name;
  sketch.title = quality.title;
  sketch.caption = chosen_words(quality);
  sketch.y = quality.words + std::string(" on the test");
  sketch.y_encoding = quality_encoding(quality);
  sketch.columns = tooltip_columns(quality.words);
  sketch.published_by_name = !along;
  if (joined || !along) {
    sketch.published = published_accuracies(published, panel, along ? panel.axis : "");
  }
  std::vector<double> further;
  for (const Published& number : sketch.published) further.push_back(number.x);
  sketch.x = along ? x_encoding(panel, further)
                   : Json{{"field", "x"},
                          {"type", "nominal"},
                          {"title", nullptr},
                          {"sort", published_last(panel, sketch.published)},
                          {"axis", {{"labelAngle", name_angle(panel)}, {"labelLimit", 120}}}};
  const std::vector<Selection> selected = selections(panel);
  for (const Selection& selection : selected) {
    const Json x = along && selection.x ? *selection.x : Json(selection.series);
    if (along && !selection.x) continue;
    if (joined) sketch.rows.push_back(mean_row(selection.series, x, selection.choice().test));
    for (const CellRecord* cell : selection.choice().cells) {
      sketch.rows.push_back(
          row_of(*cell, selection.series, "dot", x, metric(*cell, quality.metric)));
    }
    add_reach(sketch.rows, selection, x);
    if (joined) join_reach(sketch.rows);
  }
  add_levels(sketch.layers, panel, sketch.rows);
  if (along && !sketch.rows.empty()) add_chances(sketch.rows, panel);
  if (any_of_kind(sketch.rows, "chance")) sketch.caption += " Grey ticks: chance.";
  sketch.caption += reach_words(selected);
  sketch.caption += kept_words(selected);
  return sketched(panel, palette, std::move(sketch));
}

std::optional<Figure> accuracy_over_rate_figure(const Panel& panel, const Palette& palette) {
  Sketch sketch;
  const Quality& quality = quality_of(panel);
  sketch.what = quality.name + std::string("_over_learning_rate");
  sketch.joins = true;
  sketch.title = quality.less_is_better
                     ? title_words(quality) + " of the validation over the learning rate"
                     : "Validation accuracy against the learning rate";
  sketch.caption = std::string("Dots: every seed; lines: their mean, whose ") +
                   (quality.less_is_better ? "least" : "greatest") +
                   " value chooses the learning rate. A choice at the edge may have a better one "
                   "beyond it.";
  sketch.y = quality.validation;
  sketch.y_encoding = quality_encoding(quality);
  sketch.columns = tooltip_columns(quality.validation);
  sketch.x = logarithmic("learning rate", 10, "~g");
  const std::vector<Selection> selected = selections(panel);
  const bool several = std::any_of(selected.begin(), selected.end(),
                                   [](const Selection& one) { return one.rates.size() > 1; });
  if (!several) return std::nullopt;  // nothing was chosen
  for (const Selection& selection : selected) {
    for (const Rate& rate : selection.rates) {
      if (rate.cells.empty()) continue;
      sketch.rows.push_back(
          mean_row(selection.series, rate.learning_rate, rate.validation, line_of(selection)));
      for (const CellRecord* cell : rate.cells) {
        sketch.rows.push_back(row_of(*cell, selection.series, "dot", rate.learning_rate,
                                     metric(*cell, quality.validation_metric)));
      }
    }
  }
  return sketched(panel, palette, std::move(sketch));
}

std::optional<Figure> look_back_figure(const Panel& panel, const Palette& palette) {
  Sketch sketch;
  sketch.what = "accuracy_by_look_back";
  sketch.joins = true;
  sketch.title = "Accuracy against how far back the answer stands";
  sketch.caption =
      "Test questions by distance in tokens, in powers of two up to the value shown; all segments "
      "and seeds together, at the chosen learning rate.";
  sketch.y = "accuracy on the test";
  sketch.columns = tooltip_columns("accuracy");
  sketch.columns.emplace_back("count", "questions");
  sketch.x = logarithmic("tokens back to the answer", 2, ",~r");
  for (const Selection& selection : selections(panel)) {
    std::map<double, std::pair<double, double>> bins;
    for (const CellRecord* cell : selection.choice().cells) {
      if (!cell->training->look_back) continue;
      const result::LookBack& back = *cell->training->look_back;
      for (std::size_t i = 0; i < back.distances.size(); ++i) {
        const double distance = std::max(1.0, static_cast<double>(back.distances[i]));
        auto& [questions, right] = bins[std::exp2(std::ceil(std::log2(distance)))];
        questions += static_cast<double>(back.questions[i]);
        right += static_cast<double>(back.right[i]);
      }
    }
    for (const auto& [distance, counts] : bins) {
      TrainingRow dot = row_of(*selection.choice().cells.front(), selection.series, "dot", distance,
                               counts.second / counts.first);
      dot.json.update({{"count", text::human_count(counts.first)}});
      add_joined(sketch.rows, std::move(dot), line_of(selection));
    }
  }
  return sketched(panel, palette, std::move(sketch));
}

std::optional<Figure> learning_curves_figure(const Panel& panel, const Palette& palette) {
  Sketch sketch;
  sketch.what = "learning_curves";
  sketch.joins = true;
  sketch.title = "Learning curves";
  const Quality& quality = quality_of(panel);
  const bool of_text = quality.less_is_better;
  sketch.caption = every_seed_words(quality);
  const std::string predicted = "next " + std::string(quality.token) + "s predicted";
  sketch.y = of_text ? predicted + ", of the validation split" : "accuracy on the validation split";
  sketch.columns = tooltip_columns(of_text ? predicted.c_str() : "validation accuracy");
  sketch.columns.emplace_back("loss", "loss of the epoch");
  sketch.columns.emplace_back("train", "accuracy while learning");
  sketch.x = of_text ? steps_encoding()
                     : Json{{"field", "x"},
                            {"type", "quantitative"},
                            {"title", "epochs"},
                            {"axis", {{"tickMinStep", 1}, {"grid", false}}}};
  const PlaceOnCurve over_epochs = [](const result::CurvePoint& point) {
    return std::make_optional(std::pair<Json, double>(point.epoch, point.validation_accuracy));
  };
  const PlaceOnCurve over_steps = [](const result::CurvePoint& point) {
    return point.step
               ? std::make_optional(std::pair<Json, double>(*point.step, point.validation_accuracy))
               : std::nullopt;
  };
  add_curves(sketch, panel, of_text ? over_steps : over_epochs, share_words);
  return sketched(panel, palette, std::move(sketch));
}

std::optional<Figure> loss_curves_figure(const Panel& panel, const Palette& palette) {
  Sketch sketch;
  sketch.what = "loss_curves";
  sketch.joins = true;
  sketch.title = "Loss while learning";
  sketch.caption = "Cross-entropy, the mean over the steps since the evaluation before. " +
                   every_seed_words(quality_of(panel));
  sketch.y = "loss (nats)";
  sketch.columns = tooltip_columns("loss");
  sketch.columns.emplace_back("train", "accuracy while learning");
  sketch.x = steps_encoding();
  const PlaceOnCurve place = [](const result::CurvePoint& point) {
    const bool drawn = point.step && point.loss > 0;  // the axis is logarithmic
    return drawn ? std::make_optional(std::pair<Json, double>(*point.step, point.loss))
                 : std::nullopt;
  };
  add_curves(sketch, panel, place, number_words);
  std::vector<double> losses;
  for (const TrainingRow& row : sketch.rows) losses.push_back(row.y);
  if (losses.empty()) return std::nullopt;
  sketch.y_encoding = {{"scale", {{"type", "log"}, {"nice", false}, {"padding", 8}}},
                       {"axis", {{"format", "~g"}, {"values", decade_ticks(losses)}}}};
  return sketched(panel, palette, std::move(sketch));
}

std::optional<Figure> bits_over_steps_figure(const Panel& panel, const Palette& palette) {
  const Quality& quality = quality_of(panel);
  if (!quality.less_is_better) return std::nullopt;
  Sketch sketch;
  sketch.what = "bits_per_byte_over_steps";
  sketch.joins = true;
  sketch.title = title_words(quality) + " of the validation while learning";
  sketch.caption = every_seed_words(quality);
  sketch.y = quality.validation;
  sketch.y_encoding = quality_encoding(quality);
  sketch.columns = tooltip_columns(quality.validation);
  sketch.columns.emplace_back("loss", "loss since the evaluation before (nats)");
  sketch.x = steps_encoding();
  add_curves(sketch, panel, loss_over_steps, share_words, quality.of_loss);
  add_levels(sketch.layers, panel, sketch.rows);
  return sketched(panel, palette, std::move(sketch));
}

std::optional<Figure> bits_over_length_figure(const Panel& panel, const Palette& palette) {
  const Quality& quality = quality_of(panel);
  if (!quality.less_is_better) return std::nullopt;
  Sketch sketch;
  sketch.what = "bits_per_byte_over_length";
  sketch.joins = true;
  sketch.title = title_words(quality) + " over the length of a sequence";
  sketch.caption = chosen_words(quality) +
                   " The same text is scored at each length; the shortest is that of training.";
  sketch.y = quality.words + std::string(" on the test");
  sketch.y_encoding = quality_encoding(quality);
  sketch.columns = tooltip_columns(quality.words);
  sketch.x = logarithmic("tokens of a sequence", 2, ",~r");
  for (const Selection& selection : selections(panel)) {
    const auto& cells = selection.choice().cells;
    std::map<std::int64_t, double> sums;
    for (const CellRecord* cell : cells) {
      for (const result::Segment& segment : cell->training->test) {
        if (!segment.length || !segment.loss) continue;
        const double score = quality.of_loss(*segment.loss);
        sums[*segment.length] += score;
        sketch.rows.push_back(row_of(*cell, selection.series, "dot", *segment.length, score));
      }
    }
    for (const auto& [length, sum] : sums) {
      sketch.rows.push_back(mean_row(selection.series, length,
                                     sum / static_cast<double>(cells.size()), line_of(selection)));
    }
  }
  if (sketch.rows.empty()) return std::nullopt;
  add_levels(sketch.layers, panel, sketch.rows);
  return sketched(panel, palette, std::move(sketch));
}

}  // namespace attnbench::reports
