#include "core/result/training.hpp"

#include <algorithm>
#include <cmath>

namespace attnbench::result {
namespace {

/// A whole number is written as one: 5, not 5.0.
Json whole_or_fraction(double number) {
  const auto whole = static_cast<std::int64_t>(number);
  return static_cast<double>(whole) == number ? Json(whole) : Json(number);
}

}  // namespace

ATTNBENCH_JSON_CODEC(SegmentExamples) {
  JSON_USUAL(segment, examples);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(Segment) {
  JSON_AT(questions);
  JSON_MAYBE(segment, length, examples, accuracy, loss, wrong_from_context, wrong_from_elsewhere);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(LookBack) {
  JSON_AT(distances, questions, right);
  JSON_IGNORE_REST;
}

ATTNBENCH_JSON_CODEC(ReachLine) {
  JSON_AT(keys, state_bytes, reach);
  JSON_IGNORE_REST;
}

static void fields(auto& json, OrConst<CurvePoint> auto& value) {
  JSON_AT(loss, train_accuracy, validation_accuracy);
  JSON_MAYBE(step, learning_rate, validation_loss, test_accuracy, test_loss);
}
void to_json(Json& json, const CurvePoint& value) {
  json = Json::object();
  JsonWriter writer(json);
  fields(writer, value);
  writer.at("epoch", whole_or_fraction(value.epoch));
  writer.rest(value.further);
}
void from_json(const Json& json, CurvePoint& value) {
  value = CurvePoint{};
  JsonReader reader(json);
  reader.at("epoch", value.epoch);
  fields(reader, value);
  reader.rest(value.further);
}

ATTNBENCH_JSON_CODEC(Selected) {
  JSON_AT(step, validation_accuracy);
  JSON_MAYBE(test_accuracy, validation_loss, test_loss);
  JSON_IGNORE_REST;
}

ATTNBENCH_JSON_CODEC(WeightSelection) {
  JSON_AT(keep, step, last, best_validation);
  JSON_MAYBE(best_test);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(CountedLevel) {
  JSON_AT(context, bits_per_byte);
  JSON_IGNORE_REST;
}

ATTNBENCH_JSON_CODEC(LatentProbabilities) {
  JSON_AT(block, blocks, head, heads, states, first_state, tokens, probabilities, in_use, length);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(Training) {
  JSON_AT(curve, test);
  JSON_MAYBE(judged_by, levels, steps, epochs, examples_unique, examples_seen, train, validation,
             stopped, selection, converged, disturbed, guess, chance, reach, stacked, look_back,
             reach_line, confusion, latent_probabilities, attention_dropout, parameters,
             state_bytes, rules, data, weights_hash, resumed_from_step, processes,
             checkpoint_notes);
  JSON_REST;
}

Ending ending_of(const Training& training) {
  const bool stands = training.converged.value_or(false);
  const Ending seen = stands ? Ending::converged : Ending::still_learning;
  if (!training.judged_by.empty() || !training.chance || training.curve.empty()) return seen;
  // Of classes the most frequent one needs no learning; the guess of a recall does.
  const bool classified = !training.confusion.empty();
  const double unlearned = std::max(*training.chance, classified ? training.guess.value_or(0) : 0);
  double examples = 0;
  for (const SegmentExamples& segment : training.validation) {
    examples += static_cast<double>(segment.examples);
  }
  const double deviation = examples > 0 ? std::sqrt(unlearned * (1 - unlearned) / examples) : 0;
  double best = 0;
  for (const CurvePoint& point : training.curve) best = std::max(best, point.validation_accuracy);
  return best - unlearned < std::max(least_gain, 3 * deviation) ? Ending::at_chance : seen;
}

}  // namespace attnbench::result
