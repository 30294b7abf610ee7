// The training section of a record: how far it went, its curve, its test and which weights were
// scored. training.cpp says what each member is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json_schema.hpp"

namespace attnbench::result {

/// How many examples a segment of the training or validation data has.
struct SegmentExamples {
  std::string segment;
  std::int64_t examples = 0;
  Values further;
};

/// A segment of the test.
struct Segment {
  std::string segment;
  std::optional<std::int64_t> length;
  std::optional<std::int64_t> examples;
  std::int64_t questions = 0;
  std::optional<double> accuracy;
  std::optional<double> loss;
  std::optional<double> wrong_from_context;
  std::optional<double> wrong_from_elsewhere;
  Values further;
};

/// The numbers of questions, and of those answered right, by distance in tokens.
struct LookBack {
  std::vector<std::int64_t> distances;
  std::vector<std::int64_t> questions;
  std::vector<std::int64_t> right;
};

/// The accuracy of one look-up into a window, by the window's number of keys.
struct ReachLine {
  std::vector<std::int64_t> keys;
  std::vector<std::int64_t> state_bytes;
  std::vector<double> reach;
};

/// One evaluation of a training. loss and train_accuracy are means over the steps since the one
/// before.
struct CurvePoint {
  double epoch = 0;
  std::optional<std::int64_t> step;
  std::optional<double> learning_rate;
  double loss = 0;
  double train_accuracy = 0;
  std::optional<double> validation_loss;
  double validation_accuracy = 0;
  std::optional<double> test_accuracy;
  std::optional<double> test_loss;
  Values further;
};

/// The weights that a rule of selection chooses. Losses are there where the loss decides.
struct Selected {
  std::int64_t step = 0;
  double validation_accuracy = 0;
  std::optional<double> test_accuracy;
  std::optional<double> validation_loss;
  std::optional<double> test_loss;
};

/// What a language model is compared with: the mean bits of a byte of the test, predicted by counts
/// of the training text from so many bytes before it.
struct CountedLevel {
  std::int64_t context = 0;
  double bits_per_byte = 0;
};

/// The probabilities p(l | t) by which a mixture of latents divides each token of one test sequence
/// among its states, in one head of one block, and the share of states in use anywhere in the
/// model.
struct LatentProbabilities {
  std::int64_t block = 0;
  std::int64_t blocks = 0;
  std::int64_t head = 0;
  std::int64_t heads = 0;
  std::int64_t states = 0;
  std::string first_state;
  std::vector<std::string> tokens;
  std::vector<std::vector<double>> probabilities;
  double in_use = 0;
  std::int64_t length = 0;
  Values further;
};

/// The weights that all metrics are computed with, and what other rules of selection give.
struct WeightSelection {
  std::string keep;
  std::int64_t step = 0;
  Selected last;
  Selected best_validation;
  std::optional<Selected> best_test;
  Values further;
};

struct Training {
  std::string judged_by;
  std::optional<std::int64_t> steps;
  std::optional<double> epochs;
  std::optional<std::int64_t> examples_unique;
  std::optional<double> examples_seen;
  std::vector<SegmentExamples> train;
  std::vector<SegmentExamples> validation;
  std::string stopped;
  std::optional<WeightSelection> selection;
  std::optional<bool> converged;
  bool disturbed = false;
  std::optional<double> guess;
  std::optional<double> chance;
  std::optional<double> reach;
  std::optional<std::int64_t> stacked;
  std::vector<CurvePoint> curve;
  std::vector<Segment> test;
  std::optional<LookBack> look_back;
  std::optional<ReachLine> reach_line;
  std::vector<CountedLevel> levels;
  std::vector<std::vector<std::int64_t>> confusion;
  std::optional<LatentProbabilities> latent_probabilities;
  std::string attention_dropout;
  Json parameters;
  Json state_bytes;
  Json rules;
  Json data;
  std::string weights_hash;
  std::optional<std::int64_t> resumed_from_step;
  std::optional<std::int64_t> processes;
  std::vector<std::string> checkpoint_notes;
  Values further;
};

/// How a training ended. `at_chance`: it stands still, or so it seems, but it has learned nothing
/// yet: no evaluation's accuracy was above what is right without learning, by `least_gain` and by
/// three standard deviations of a validation of its size. More steps or another learning rate may
/// set it off, so that it tells nothing of what its mechanism can learn.
enum class Ending { converged, still_learning, at_chance };
constexpr double least_gain = 0.01;  ///< of an accuracy that counts as learning
Ending ending_of(const Training& training);

// to_json writes a part as the schema has it; from_json throws SchemaError.
ATTNBENCH_DESCRIBED(SegmentExamples);
ATTNBENCH_DESCRIBED(Segment);
ATTNBENCH_DESCRIBED(LookBack);
ATTNBENCH_DESCRIBED(ReachLine);
ATTNBENCH_DESCRIBED(CurvePoint);
ATTNBENCH_DESCRIBED(Selected);
ATTNBENCH_DESCRIBED(WeightSelection);
ATTNBENCH_DESCRIBED(CountedLevel);
ATTNBENCH_DESCRIBED(LatentProbabilities);
ATTNBENCH_DESCRIBED(Training);

}  // namespace attnbench::result
