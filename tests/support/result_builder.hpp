// Results as tests make them up, of the program's own types: cells, rounds and trainings that say
// what a test says of them.
#pragma once

#include <cmath>
#include <deque>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/result/document.hpp"
#include "reports/figures/palette.hpp"
#include "reports/tables/layout.hpp"
#include "tests/support/files.hpp"

namespace attnbench::test {

using result::CellRecord;

/// A cell that ended well, of which nothing was measured yet.
struct CellBuilder : CellRecord {
  explicit CellBuilder(const std::string& name, const std::string& of_task = "kernel") {
    id = label = mechanism = name;
    task = task_label = of_task;
    implementation = "auto";
    status = Status::ok;
  }
  CellBuilder& named(const std::string& own) {
    id = own;
    return *this;
  }
  CellBuilder& set(const std::string& key, Json value) {
    settings[key] = std::move(value);
    return *this;
  }
  CellBuilder& option(const std::string& key, Json value) {
    options[key] = std::move(value);
    return *this;
  }
  CellBuilder& length(int tokens) { return set("length", tokens); }
  CellBuilder& ended(Status how, const std::string& why = "") {
    status = how;
    reason = why;
    return *this;
  }
  /// A median of `seconds`, known to a share of `spread` on both sides.
  CellBuilder& took(double seconds, const std::string& what = "forward", double spread = 0) {
    primary = what;
    result::Timing& all = timing[what];
    all.median_seconds = seconds;
    all.low_seconds = seconds * (1 - spread);
    all.high_seconds = seconds * (1 + spread);
    return *this;
  }
  /// Rounds of these medians, numbered from 0 on, with their probes where there are any.
  CellBuilder& rounds(const std::vector<double>& medians, const std::vector<double>& probes = {}) {
    if (primary.empty()) took(medians.at(0));
    for (std::size_t i = 0; i < medians.size(); ++i) {
      result::TimingRound& one = timing[primary].rounds.emplace_back();
      one.round = static_cast<std::int64_t>(i);
      one.median_seconds = medians[i];
      if (!probes.empty()) one.calibration_seconds = probes.at(i);
    }
    return *this;
  }
  /// Other programs had the CPU in these rounds.
  CellBuilder& disturb(const std::vector<std::size_t>& numbers) {
    for (const std::size_t i : numbers) timing[primary].rounds.at(i).disturbed = true;
    return *this;
  }
  /// It has no time.
  CellBuilder& untimed() {
    timing.clear();
    primary.clear();
    return *this;
  }
};

/// A result of these cells, whose tasks have this axis.
inline result::Result result_of(std::vector<CellRecord> cells, const std::string& axis = "length") {
  result::Result made;
  for (const CellRecord& cell : cells) {
    result::TaskInfo& task = made.suite.tasks[cell.task_name()];
    task.task = cell.task;
    task.axis = axis;
  }
  made.cells = std::move(cells);
  return made;
}

/// The result's panels, which refer to a copy that is kept until the program ends.
inline std::vector<reports::Panel> panels(const result::Result& result) {
  static std::deque<result::Result> kept;
  return reports::panels(kept.emplace_back(result));
}
inline reports::Panel first_panel(const result::Result& result) {
  return test::panels(result).at(0);
}

/// A result that is stored in tests/reports: "fixture", or "fixtures/quickstart".
inline std::string fixture_file(const std::string& name = "fixture") {
  return source_folder() + "/tests/reports/" + name + ".json";
}
inline result::Result fixture_result(const std::string& name = "fixture") {
  return result::read_result(fixture_file(name));
}
/// The fixture's series.
inline const reports::Palette fixture_palette{"softmax",           "flash",  "latte, scan",
                                              "latte, vectorised", "linear", "window"};

// ---- trainings

/// One training at a learning rate and seed, with its accuracy on validation and test.
inline CellBuilder training_cell(const std::string& label, double rate, int seed, double validation,
                                 double test, Values settings = {}) {
  CellBuilder cell(label, "mqar");
  settings["learning_rate"] = rate;
  settings["model_seed"] = seed;
  settings.try_emplace("length", 64);
  cell.settings = std::move(settings);
  cell.id += Json(cell.settings).dump();
  cell.metrics = {{"accuracy", test},
                  {"validation_accuracy", validation},
                  {"train_accuracy", 1.0},
                  {"state_bytes", label == "softmax" ? 32768 : 16384},
                  {"examples_per_second", 1000.0}};
  result::Training& training = cell.training.emplace();
  for (int epoch = 1; epoch <= 4; ++epoch) {
    result::CurvePoint& point = training.curve.emplace_back();
    point.epoch = epoch;
    point.step = 10 * epoch;
    point.learning_rate = rate;
    point.loss = 2.0 / epoch;
    point.validation_loss = 2.0 / epoch;
    point.train_accuracy = point.validation_accuracy = validation * epoch / 4;
  }
  training.test = {{"64x8", 64, 100, 800, test, 1.0, (1 - test) * 0.75, (1 - test) * 0.25, {}}};
  training.converged = validation > 0.5;
  training.guess = 0.125;
  training.chance = 0.004;
  training.look_back = {{3, 4, 17}, {100, 300, 400}, {100, 150, 40}};
  return cell;
}

/// A training that classified 100 examples of two classes: accuracy on the test by the last weights
/// and by those of the best validation, which are kept.
inline CellBuilder class_cell(const std::string& label, int seed, double last, double best) {
  CellBuilder cell = training_cell(label, 0.1, seed, best, best);
  result::Training& training = *cell.training;
  training.look_back.reset();
  training.test[0].wrong_from_context = training.test[0].wrong_from_elsewhere = std::nullopt;
  training.guess = 0.52;
  training.chance = 0.5;
  const int right = static_cast<int>(50 * best);
  training.confusion = {{right, 50 - right}, {50 - right, right}};
  training.selection = result::WeightSelection{
      "best_validation", 30, {40, last, last, {}, {}}, {30, best, best, {}, {}}, {}, {}};
  return cell;
}

/// A training of a language model: bits per byte of validation and test, and of the test at twice
/// the training length.
inline CellBuilder text_cell(const std::string& label, double rate, int seed, double validation,
                             double test, double longer) {
  constexpr double nats = 0.6931471805599453;
  CellBuilder cell = training_cell(label, rate, seed, 0.4, 0.4, {{"length", 256}});
  cell.task = cell.task_label = "lm";
  cell.metrics["bits_per_byte"] = test;
  cell.metrics["perplexity"] = std::exp2(test);
  cell.metrics["validation_bits_per_byte"] = validation;
  cell.metrics["train_bits_per_byte"] = test - 0.1;
  result::Training& training = *cell.training;
  training.look_back.reset();
  training.guess = training.chance = std::nullopt;
  training.judged_by = "loss";
  training.levels = {{0, 4.6}, {1, 3.5}, {2, 2.7}};
  for (std::size_t i = 0; i < training.curve.size(); ++i) {
    training.curve[i].validation_loss = nats * (validation + 1.0 - 0.25 * double(i + 1));
  }
  training.test = {{"1x", 256, 10, 2560, 0.4, nats * test, {}, {}, {}},
                   {"2x", 512, 10, 2560, 0.4, nats * longer, {}, {}, {}}};
  return cell;
}

/// The same training where tokens are no bytes: perplexities, which are 2 to these numbers.
inline CellBuilder token_cell(const std::string& label, double rate, int seed, double validation,
                              double test, double longer) {
  CellBuilder cell = text_cell(label, rate, seed, validation, test, longer);
  for (const char* name : {"bits_per_byte", "validation_bits_per_byte", "train_bits_per_byte"}) {
    cell.metrics.erase(name);
  }
  cell.metrics["validation_perplexity"] = std::exp2(validation);
  cell.metrics["train_perplexity"] = std::exp2(test - 0.1);
  cell.training->judged_by = "perplexity";
  cell.training->levels.clear();
  return cell;
}

inline CellBuilder diverged_cell(const std::string& label, double rate, int seed) {
  CellBuilder cell = training_cell(label, rate, seed, 0, 0);
  cell.training.reset();
  cell.metrics.clear();
  return cell.ended(Status::error, "the loss is not a finite number at step 3 of 40");
}

/// Two learning rates and seeds of softmax, a window with a reach, and latte, of which one
/// diverged.
inline result::Result some_trainings() {
  CellBuilder window = training_cell("window", 0.003, 1, 0.4, 0.41);
  window.training->reach = 0.39;
  window.training->stacked = 1;
  window.training->reach_line = {
      {1, 8, 16, 32, 64}, {1024, 8192, 16384, 32768, 65536}, {0.0, 0.2, 0.39, 0.8, 1.0}};
  return result_of({training_cell("softmax", 0.001, 1, 0.9, 0.91),
                    training_cell("softmax", 0.003, 1, 0.99, 0.98),
                    training_cell("softmax", 0.003, 2, 0.97, 0.94), window,
                    training_cell("latte", 0.003, 1, 0.7, 0.72), diverged_cell("latte", 0.01, 1)});
}
/// Their series.
inline const reports::Palette training_palette{"softmax", "window", "latte"};

// ---- crossovers

/// One round's answer; an end of 0 is open.
inline result::CrossoverRound round_of(const std::string& verdict, int low, int high) {
  result::CrossoverRound round;
  round.verdict = verdict;
  if (low > 0) round.low = low;
  if (high > 0) round.high = high;
  round.implementation = "chunked";
  round.against = "softmax/tiled";
  round.length_minimum = 64;
  round.length_maximum = 4096;
  round.crossings.emplace();
  round.lengths.emplace();
  return round;
}

/// The record of a cell of latte (or of linear, which has no size) over such rounds.
inline CellBuilder crossover_cell(const std::string& scope, int heads, int latents,
                                  const std::vector<result::CrossoverRound>& rounds) {
  CellBuilder cell(latents > 0 ? "latte" : "linear", "crossover");
  cell.named(scope + std::to_string(heads) + "x" + std::to_string(latents));
  cell.set("scope", scope).set("heads", heads).set("pass", "forward");
  if (latents > 0) cell.option("latents_per_head", latents);
  cell.chosen = result::Chosen{"chunked", ""};
  cell.problem = {{"batch", 1},
                  {"heads", heads},
                  {"head_dim", 64},
                  {"pattern", "causal"},
                  {"dtype", "float32"}};
  if (!rounds.empty()) {
    cell.crossover = result::crossover_over(rounds);
    cell.metrics = result::crossover_metrics(*cell.crossover);
  }
  return cell;
}

inline result::Result crossover_result(std::vector<CellRecord> cells) {
  result::Result made = result_of(std::move(cells), "size_per_head");
  made.suite.tasks["crossover"].figures = std::vector<std::string>{"crossover"};
  return made;
}

}  // namespace attnbench::test
