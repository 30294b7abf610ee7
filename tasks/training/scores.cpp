#include "tasks/training/scores.hpp"

#include <algorithm>
#include <numeric>

namespace attnbench::tasks::learning {
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

Batch moved(const Batch& batch, const at::Device& device) {
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
    const Batch batch = moved(data.questions(split, segment, some), device_of(model));
    scores.add(scores_of(labelled_logits(model, batch), batch));
  }
  return scores;
}

}  // namespace attnbench::tasks::learning
