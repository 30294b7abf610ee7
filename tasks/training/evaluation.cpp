#include "tasks/training/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tasks/training/trainer.hpp"

namespace attnbench::tasks::training {
namespace {

Scores scores_of(const at::Tensor& logits, const Batch& batch) {
  Scores scores;
  scores.questions = logits.size(0);
  scores.loss_sum =
      at::cross_entropy_loss(logits, batch.labels, {}, at::Reduction::Sum).item<double>();
  const at::Tensor answers = logits.argmax(-1);
  const at::Tensor right = answers.eq(batch.labels);
  const at::Tensor known = answers.unsqueeze(1).eq(batch.candidates).any(1);
  scores.right = right.sum().item<std::int64_t>();
  scores.wrong_from_context = known.logical_and(right.logical_not()).sum().item<std::int64_t>();
  scores.wrong_from_elsewhere = scores.questions - scores.right - scores.wrong_from_context;
  const at::Tensor flags = right.cpu();
  const at::Tensor distances = batch.distances.cpu();
  const at::Tensor labels = batch.labels.cpu();
  const auto count = [](Scores::Share& share, bool is_right) {
    ++share.questions;
    share.right += is_right;
  };
  for (std::int64_t i = 0; i < scores.questions; ++i) {
    const bool is_right = flags.data_ptr<bool>()[i];
    const std::int64_t distance = distances.data_ptr<std::int64_t>()[i];
    if (distance > 0) count(scores.by_distance[distance], is_right);
    count(scores.by_label[labels.data_ptr<std::int64_t>()[i]], is_right);
  }
  return scores;
}

void add_shares(std::map<std::int64_t, Scores::Share>& all,
                const std::map<std::int64_t, Scores::Share>& more) {
  for (const auto& [key, share] : more) {
    all[key].questions += share.questions;
    all[key].right += share.right;
  }
}

at::Device device_of(const Model& model) { return model.parameters().front().device(); }

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

/// The score of several segments, weighted by examples, whatever the number of their questions.
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

/// Over as many training examples of each segment as the mean validation segment has. Beside the
/// validation accuracy it shows what was memorised.
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

double Scores::accuracy() const {
  return questions == 0 ? 0 : static_cast<double>(right) / static_cast<double>(questions);
}

double Scores::label_accuracy() const {
  double sum = 0;
  for (const auto& [label, share] : by_label) {
    sum += static_cast<double>(share.right) / static_cast<double>(share.questions);
  }
  return by_label.empty() ? 0 : sum / static_cast<double>(by_label.size());
}

double Scores::loss() const {
  return questions == 0 ? 0 : loss_sum / static_cast<double>(questions);
}

void Scores::add(const Scores& other) {
  questions += other.questions;
  right += other.right;
  wrong_from_context += other.wrong_from_context;
  wrong_from_elsewhere += other.wrong_from_elsewhere;
  loss_sum += other.loss_sum;
  add_shares(by_distance, other.by_distance);
  add_shares(by_label, other.by_label);
}

at::Tensor labelled_logits(Model& model, const Batch& batch, const Dropout& dropout) {
  const at::Tensor features = model.features(batch.tokens, {}, dropout).flatten(0, 1);
  const at::Tensor asked = features.index_select(0, batch.positions);
  return model.head(batch.places.defined() ? model.decoded(asked, batch.places) : asked);
}

Batch to_device(const Batch& batch, const at::Device& device) {
  if (device.is_cpu()) return batch;
  Batch there = batch;
  for (at::Tensor* tensor : {&there.tokens, &there.positions, &there.labels, &there.distances,
                             &there.candidates, &there.places}) {
    if (tensor->defined()) *tensor = tensor->to(device);
  }
  return there;
}

Scores evaluate(Model& model, const DataSet& data, Split split, std::size_t segment,
                std::int64_t examples, std::int64_t together) {
  const at::NoGradGuard no_grad;
  const std::int64_t last = std::min(examples, data.segments(split).at(segment).examples);
  Scores scores;
  for (std::int64_t first = 0; first < last; first += together) {
    std::vector<std::int64_t> some(static_cast<std::size_t>(std::min(together, last - first)));
    std::iota(some.begin(), some.end(), first);
    const Batch batch = to_device(data.questions(split, segment, some), device_of(model));
    scores.add(scores_of(labelled_logits(model, batch), batch));
  }
  return scores;
}

Json training_record(Model& model, const DataSet& data, const Trainer& trainer,
                     std::int64_t together, std::int64_t longest) {
  const TrainingState& at = trainer.state();
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
      static_cast<double>(at.step) / static_cast<double>(trainer.schedule().steps_per_epoch);
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

}  // namespace attnbench::tasks::training
