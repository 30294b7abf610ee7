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

namespace {

constexpr const char* share_rule = R"({"minimum": 0, "maximum": 1})";
constexpr const char* judged_by_rule = R"({"enum": ["loss", "perplexity"]})";
constexpr const char* first_state_rule = R"({"enum": ["window", "latent"]})";
constexpr const char* by_part_rule =
    R"({"type": ["number", "array", "object"], "items": {"type": "number"},
        "additionalProperties": {"type": "number"}, "title": "a number, or numbers by part"})";

}  // namespace

ATTNBENCH_DESCRIBED_CODEC(SegmentExamples) {
  JSON_USUAL(segment, examples);
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Segment) {
  JSON_AT(segment, questions, accuracy);
  JSON_MAYBE(length, examples, loss);
  JSON_KEY(maybe, wrong_from_context,
           "share of the questions; absent where answers do not stand in sequences");
  JSON_MAYBE(wrong_from_elsewhere);
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(LookBack) {
  JSON_AT(distances, questions, right);
  JSON_IGNORE_REST;
}

ATTNBENCH_DESCRIBED_CODEC(ReachLine) {
  JSON_AT(keys, state_bytes, reach);
  JSON_IGNORE_REST;
}

/// Writes a whole number as one: 5, not 5.0.
static void epoch_field(JsonWriter& json, const CurvePoint& value) {
  json.at("epoch", whole_or_fraction(value.epoch));
}
static void epoch_field(auto& json, auto& value) {
  JSON_KEY(at, epoch, "epochs trained until then; a fraction where steps are counted");
}

ATTNBENCH_DESCRIBED_CODEC(CurvePoint) {
  epoch_field(json, value);
  JSON_AT(loss, train_accuracy, validation_accuracy);
  JSON_MAYBE(step, learning_rate, validation_loss);
  JSON_KEY(maybe, test_accuracy, "where each evaluation scores the test, too");
  JSON_MAYBE(test_loss);
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Selected) {
  JSON_AT(step, validation_accuracy);
  JSON_MAYBE(test_accuracy);
  JSON_KEY(maybe, validation_loss, "where the loss decides");
  JSON_MAYBE(test_loss);
  JSON_IGNORE_REST;
}

ATTNBENCH_DESCRIBED_CODEC(WeightSelection) {
  JSON_KEY(at, keep, "last or best_validation");
  JSON_AT(step, last, best_validation);
  JSON_KEY(maybe, best_test, "selected on the test itself");
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(CountedLevel) {
  JSON_KEY(at, context, "", Rule::size);
  JSON_AT(bits_per_byte);
  JSON_IGNORE_REST;
}

ATTNBENCH_DESCRIBED_CODEC(LatentProbabilities) {
  JSON_KEY(at, block, "of those with the mechanism, from 1 on: the last", Rule::count);
  JSON_KEY(at, blocks, "", Rule::count);
  JSON_KEY(at, head, "from 1 on: the first", Rule::count);
  JSON_KEY(at, heads, "", Rule::count);
  JSON_KEY(at, states, "of each head", Rule::count);
  JSON_KEY(at, first_state, "what state 0 is", first_state_rule);
  JSON_KEY(at, tokens, "the sequence's first bytes in ASCII; others are \\xHH");
  JSON_KEY(at, probabilities, "a row for each token: states 0 to 16");
  JSON_KEY(at, in_use,
           "share of all (block, head, state) whose mean probability over the sequence is above "
           "half of the uniform one, 1 / states",
           share_rule);
  JSON_KEY(at, length, "tokens of the sequence, over which that mean is taken", Rule::count);
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Training) {
  JSON_AT(curve, test);
  JSON_KEY(maybe, judged_by,
           "what selects learning rates and weights, and what reports show: perplexity, the loss "
           "of tokens that are no bytes; absent: accuracy",
           judged_by_rule);
  JSON_KEY(maybe, levels,
           "of language models: mean bits of a byte of the test, predicted by counts of the "
           "training text from so many bytes before it");
  JSON_MAYBE(steps, epochs, examples_unique, examples_seen);
  JSON_KEY(maybe, train, "segments with their examples");
  JSON_MAYBE(validation);
  JSON_KEY(maybe, stopped, "epochs, steps or accuracy");
  JSON_KEY(maybe, selection,
           "the weights that all metrics are of, and what other rules of selection give");
  JSON_MAYBE(converged);
  JSON_KEY(maybe, disturbed,
           "its threads waited for a CPU for more than 5 % of the time: train_seconds and "
           "examples_per_second are not its own, what it learned is");
  JSON_MAYBE(guess, chance);
  JSON_KEY(maybe, reach, "computed: the accuracy of one look-up into the window");
  JSON_KEY(maybe, stacked, "blocks that hold the window");
  JSON_KEY(maybe, look_back,
           "questions, and those answered right, by distance in tokens; absent where answers do "
           "not stand in sequences");
  JSON_KEY(maybe, reach_line, "reach for windows of so many keys");
  JSON_KEY(maybe, confusion,
           "of examples that are classified: a row for each true class, how many of its test "
           "examples were taken for each class");
  JSON_KEY(maybe, latent_probabilities,
           "p(l | t) of mixtures of latents, of the first test sequence of a language model, where "
           "the setting latent_probabilities asks for it");
  JSON_KEY(maybe, attention_dropout,
           "not built: published protocols of classification have it, ours does not");
  JSON_KEY(maybe, parameters, "total, mechanism", by_part_rule);
  JSON_KEY(maybe, state_bytes, "mechanism, convolution", by_part_rule);
  JSON_KEY(maybe, rules, "sizes that a task derived");
  JSON_KEY(maybe, data,
           "prepared data: source, hashes, rows and lengths of each split, share of the most "
           "frequent class",
           Rule::object);
  JSON_MAYBE(weights_hash, resumed_from_step);
  JSON_KEY(maybe, processes, "that trained together");
  JSON_KEY(maybe, checkpoint_notes, "why a checkpoint that was there was not used");
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
