#include "tasks/training/outcome.hpp"

#include <algorithm>
#include <cmath>

namespace attnbench::tasks::learning {
namespace {

std::int64_t examples_in(const DataSet& data, Split split) {
  std::int64_t sum = 0;
  for (const SegmentSize& segment : data.segments(split)) sum += segment.examples;
  return sum;
}

Json sizes_of(const DataSet& data, Split split) {
  Json list = Json::array();
  for (const SegmentSize& segment : data.segments(split)) {
    list.push_back({{"segment", segment.name}, {"examples", segment.examples}});
  }
  return list;
}

Json to_json(const SegmentSize& segment, const Scores& scores) {
  const auto questions = static_cast<double>(std::max<std::int64_t>(1, scores.questions));
  return {{"segment", segment.name},
          {"length", segment.length},
          {"examples", segment.examples},
          {"questions", scores.questions},
          {"accuracy", scores.accuracy()},
          {"loss", scores.loss()},
          {"wrong_from_context", static_cast<double>(scores.wrong_from_context) / questions},
          {"wrong_from_elsewhere", static_cast<double>(scores.wrong_from_elsewhere) / questions}};
}

Json look_back_of(const Scores& scores) {
  Json columns = {
      {"distances", Json::array()}, {"questions", Json::array()}, {"right", Json::array()}};
  for (const auto& [distance, share] : scores.by_distance) {
    columns["distances"].push_back(distance);
    columns["questions"].push_back(share.questions);
    columns["right"].push_back(share.right);
  }
  return columns;
}

/// A score of several segments: every example counts alike, whatever the number of its questions.
class MeanOverExamples {
 public:
  void add(const Scores& scores, std::int64_t examples) {
    const auto weight = static_cast<double>(examples);
    examples_ += weight;
    accuracy_ += weight * scores.accuracy();
    loss_ += weight * scores.loss();
  }
  double accuracy() const { return examples_ > 0 ? accuracy_ / examples_ : 0; }
  double loss() const { return examples_ > 0 ? loss_ / examples_ : 0; }

 private:
  double examples_ = 0;
  double accuracy_ = 0;
  double loss_ = 0;
};

/// Of as many training examples of each segment as the validation's mean segment has: what was
/// learned by heart shows beside what was not.
double train_accuracy(Model& model, const DataSet& data, std::int64_t together) {
  const auto segments = data.segments(Split::train);
  const auto validations = std::max<std::size_t>(1, data.segments(Split::validation).size());
  const std::int64_t some = std::max<std::int64_t>(
      1, examples_in(data, Split::validation) / static_cast<std::int64_t>(validations));
  MeanOverExamples mean;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    mean.add(evaluate(model, data, Split::train, i, some, together), segments[i].examples);
  }
  return mean.accuracy();
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

Json outcome(Model& model, const DataSet& data, const Trainer& trainer, std::int64_t together,
             std::int64_t longest) {
  const Progressed& at = trainer.progressed();
  Json test = Json::array();
  MeanOverExamples mean;
  Scores all;
  const auto segments = data.segments(Split::test);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Scores scores = evaluate(model, data, Split::test, i, segments[i].examples, together);
    test.push_back(to_json(segments[i], scores));
    mean.add(scores, segments[i].examples);
    all.add(scores);
  }
  const std::int64_t in_epoch = examples_in(data, Split::train);
  const auto epochs =
      static_cast<double>(at.step) / static_cast<double>(trainer.course().steps_per_epoch);
  const auto seen = static_cast<double>(in_epoch) * epochs;
  const auto unique = trainer.fresh() ? static_cast<std::int64_t>(std::llround(seen)) : in_epoch;
  std::int64_t state = 0;
  const auto state_parts = model.state_bytes(longest);
  for (const auto& [part, bytes] : state_parts) state += bytes;
  const auto weights = weights_by_part(model);
  Json metrics = {{"accuracy", mean.accuracy()},
                  {"validation_accuracy", at.curve.back().at("validation_accuracy")},
                  {"train_accuracy", train_accuracy(model, data, together)},
                  {"label_accuracy", all.label_accuracy()},
                  {"test_loss", mean.loss()},
                  {"parameters", weights.at("total")},
                  {"train_seconds", at.step_seconds}};
  if (state_parts.count("mechanism") != 0) metrics["state_bytes"] = state;
  if (at.step_seconds > 0) metrics["examples_per_second"] = seen / at.step_seconds;
  Json training = {{"steps", at.step},
                   {"epochs", epochs},
                   {"examples_unique", unique},
                   {"examples_seen", seen},
                   {"train", sizes_of(data, Split::train)},
                   {"validation", sizes_of(data, Split::validation)},
                   {"test", std::move(test)},
                   {"stopped", at.stopped},
                   {"converged", has_converged(at)},
                   {"curve", at.curve},
                   {"look_back", look_back_of(all)},
                   {"parameters", weights},
                   {"state_bytes", state_parts},
                   {"weights_hash", hash_of(weights_of(model))}};
  if (trainer.resumed_from() > 0) training["resumed_from_step"] = trainer.resumed_from();
  if (!trainer.notes().empty()) training["checkpoint_notes"] = trainer.notes();
  return {{"metrics", std::move(metrics)}, {"training", std::move(training)}};
}

}  // namespace attnbench::tasks::learning
