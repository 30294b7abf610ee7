#include "core/result/training.hpp"

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

}  // namespace attnbench::result
