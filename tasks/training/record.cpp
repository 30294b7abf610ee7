#include "tasks/training/record.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace attnbench::tasks::training {
namespace {

std::int64_t examples_in(const DataSet& data, Split split) {
  std::int64_t sum = 0;
  for (const SegmentSize& segment : data.segments(split)) sum += segment.examples;
  return sum;
}

std::vector<result::SegmentExamples> sizes_of(const DataSet& data, Split split) {
  std::vector<result::SegmentExamples> list;
  for (const SegmentSize& segment : data.segments(split)) {
    list.push_back({segment.name, segment.examples, {}});
  }
  return list;
}

result::Segment scored_segment(const SegmentSize& segment, const Scores& scores) {
  result::Segment record;
  record.segment = segment.name;
  record.length = segment.length;
  record.examples = segment.examples;
  record.questions = scores.questions;
  record.accuracy = scores.accuracy();
  record.loss = scores.loss();
  if (!scores.from_context) return record;
  const auto questions = static_cast<double>(std::max<std::int64_t>(1, scores.questions));
  record.wrong_from_context = static_cast<double>(scores.wrong_from_context) / questions;
  record.wrong_from_elsewhere = static_cast<double>(scores.wrong_from_elsewhere) / questions;
  return record;
}

result::LookBack look_back_of(const Scores& scores) {
  result::LookBack columns;
  for (const auto& [distance, share] : scores.by_distance) {
    columns.distances.push_back(distance);
    columns.questions.push_back(share.questions);
    columns.right.push_back(share.right);
  }
  return columns;
}

/// Scores of as many training examples of each segment as the mean validation segment has. Beside
/// the validation they show what was memorised.
SplitScores on_training_examples(Model& model, const DataSet& data, std::int64_t together) {
  const auto validations = std::max<std::size_t>(1, data.segments(Split::validation).size());
  const std::int64_t some = std::max<std::int64_t>(
      1, examples_in(data, Split::validation) / static_cast<std::int64_t>(validations));
  return evaluate_all(model, data, Split::train, together, some);
}

/// A row for each true class: how many of its examples were taken for each class.
std::vector<std::vector<std::int64_t>> confusion_of(const Scores& scores, std::int64_t classes) {
  std::vector<std::vector<std::int64_t>> rows;
  for (std::int64_t i = 0; i < classes; ++i) {
    const auto first = scores.confusion.begin() + i * classes;
    rows.emplace_back(first, first + classes);
  }
  return rows;
}

/// The scores that the curve has of the weights after `step` steps.
result::Selected point_at(const TrainingState& state, std::int64_t step, Measure measure) {
  for (const result::CurvePoint& point : state.curve) {
    if (point.step != step) continue;
    result::Selected selected{step, point.validation_accuracy, point.test_accuracy, {}, {}};
    if (measure == Measure::loss) {
      selected.validation_loss = point.validation_loss;
      selected.test_loss = point.test_loss;
    }
    return selected;
  }
  throw std::logic_error("no evaluation after step " + std::to_string(step));
}

/// The step of the best test of the curve, which test_each records.
std::int64_t best_test_step(const TrainingState& state, Measure measure) {
  const auto goodness = [&](const result::CurvePoint& point) {
    return measure == Measure::loss ? -point.test_loss.value() : point.test_accuracy.value();
  };
  const result::CurvePoint* best = nullptr;
  for (const result::CurvePoint& point : state.curve) {
    if (best == nullptr || goodness(point) > goodness(*best)) best = &point;
  }
  return best->step.value();
}

/// The scores of some weights on the test; of language models, those at the length of training.
struct OnTest {
  double accuracy = 0;
  double loss = 0;
};
OnTest on_test_of(const SplitScores& scores, Measure measure) {
  if (measure == Measure::accuracy) return {scores.accuracy(), scores.loss()};
  return {scores.scores.front().accuracy(), scores.scores.front().loss()};
}

/// What each rule of selection gives. The last weights have the scores `last` on the test, the kept
/// ones `kept`.
result::WeightSelection selection_of(const Trainer& trainer, Measure measure, const OnTest& last,
                                     const OnTest& kept) {
  const TrainingState& state = trainer.state();
  result::WeightSelection selection;
  selection.keep = to_string(trainer.options().keep);
  selection.step = trainer.kept_step();
  selection.last = point_at(state, state.step, measure);
  selection.best_validation = point_at(state, best_step(state, measure), measure);
  const auto set = [&](result::Selected& rule, const OnTest& scores) {
    rule.test_accuracy = scores.accuracy;
    if (measure == Measure::loss) rule.test_loss = scores.loss;
  };
  set(selection.last, last);
  for (result::Selected* rule : {&selection.last, &selection.best_validation}) {
    if (rule->step == selection.step) set(*rule, kept);
  }
  if (trainer.options().test_each) {
    selection.best_test = point_at(state, best_test_step(state, measure), measure);
  }
  return selection;
}

/// Bits of a byte, from nats.
double bits_of(double loss) { return loss / std::log(2.0); }

/// The metrics of a language model: of bytes in bits, of other tokens as perplexities, beside bits
/// where the bytes are known. Test scores are those at the length of training.
void add_loss_metrics(Values& metrics, std::optional<double> bytes_per_token, const OnTest& test,
                      double validation_loss, double train_loss) {
  metrics["perplexity"] = std::exp(test.loss);
  if (bytes_per_token) metrics["bits_per_byte"] = bits_of(test.loss) / *bytes_per_token;
  if (bytes_per_token == 1) {
    metrics["validation_bits_per_byte"] = bits_of(validation_loss);
    metrics["train_bits_per_byte"] = bits_of(train_loss);
  } else {
    metrics["validation_perplexity"] = std::exp(validation_loss);
    metrics["train_perplexity"] = std::exp(train_loss);
  }
}

std::map<std::string, std::int64_t> weights_by_part(const Model& model) {
  std::map<std::string, std::int64_t> parts;
  for (const auto& item : model.named_parameters()) {
    const std::int64_t size = item.value().numel();
    const bool mechanism = item.key().find(".attention.") != std::string::npos;
    parts["total"] += size;
    parts["mechanism"] += mechanism ? size : 0;
  }
  return parts;
}

}  // namespace

RunSections training_record(Model& model, const DataSet& data, Trainer& trainer,
                            std::int64_t together, std::int64_t longest) {
  const TrainingState& at = trainer.state();
  const auto on_test = [&] { return evaluate_all(model, data, Split::test, together); };
  const Measure measure = data.judged_by();
  const bool by_loss = measure == Measure::loss;
  const bool of_bytes = data.bytes_per_token() == 1;
  SplitScores scores = on_test();
  const OnTest last_test = on_test_of(scores, measure);
  if (trainer.kept_step() != at.step) {
    trainer.keep();
    scores = on_test();
  }
  const OnTest test = on_test_of(scores, measure);
  const result::Selected kept = point_at(at, trainer.kept_step(), measure);
  const SplitScores train = on_training_examples(model, data, together);
  const Scores all = scores.sum();
  const std::int64_t in_epoch = examples_in(data, Split::train);
  const auto epochs =
      static_cast<double>(at.step) / static_cast<double>(trainer.schedule().steps_per_epoch);
  const auto seen = static_cast<double>(in_epoch) * epochs;
  const auto unique =
      trainer.options().fresh ? static_cast<std::int64_t>(std::llround(seen)) : in_epoch;
  std::int64_t state = 0;
  const auto state_parts = model.state_bytes(longest);
  for (const auto& [part, bytes] : state_parts) state += bytes;
  const auto weights = weights_by_part(model);
  RunSections sections;
  sections.metrics = {
      {"accuracy", test.accuracy},          {"validation_accuracy", kept.validation_accuracy},
      {"train_accuracy", train.accuracy()}, {"test_loss", test.loss},
      {"parameters", weights.at("total")},  {"train_seconds", at.step_seconds}};
  if (by_loss) {
    add_loss_metrics(sections.metrics, data.bytes_per_token(), test, kept.validation_loss.value(),
                     train.loss());
  } else {
    sections.metrics.emplace("label_accuracy", all.label_accuracy());
  }
  if (state_parts.count("mechanism") != 0) sections.metrics.emplace("state_bytes", state);
  if (at.step_seconds > 0) {
    sections.metrics.emplace("examples_per_second", seen / at.step_seconds);
    if (by_loss) {
      const auto length = static_cast<double>(training::longest(data, Split::train));
      sections.metrics.emplace(of_bytes ? "bytes_per_second" : "tokens_per_second",
                               seen * length / at.step_seconds);
    }
  }
  result::Training& training = sections.training.emplace();
  training.steps = at.step;
  training.epochs = epochs;
  training.examples_unique = unique;
  training.examples_seen = seen;
  training.train = sizes_of(data, Split::train);
  training.validation = sizes_of(data, Split::validation);
  for (std::size_t i = 0; i < scores.segments.size(); ++i) {
    training.test.push_back(scored_segment(scores.segments[i], scores.scores[i]));
  }
  training.stopped = at.stopped;
  if (by_loss) training.judged_by = of_bytes ? "loss" : "perplexity";
  training.converged = by_loss ? loss_has_converged(at) : has_converged(at);
  training.curve = at.curve;
  training.selection = selection_of(trainer, measure, last_test, test);
  training.parameters = weights;
  training.state_bytes = state_parts;
  training.weights_hash = hash_of(weights_of(model));
  if (all.from_context) training.look_back = look_back_of(all);
  if (data.classes() > 0) {
    training.confusion = confusion_of(all, data.classes());
    training.attention_dropout = "not built";
  }
  if (trainer.resumed_from() > 0) training.resumed_from_step = trainer.resumed_from();
  training.checkpoint_notes = trainer.notes();
  return sections;
}

}  // namespace attnbench::tasks::training
