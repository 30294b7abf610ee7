#include "tasks/training/evaluation.hpp"

#include <algorithm>
#include <numeric>

namespace attnbench::tasks::training {
namespace {

Scores scores_of(const at::Tensor& logits, const Batch& batch) {
  Scores scores;
  scores.questions = logits.size(0);
  scores.loss_sum =
      at::cross_entropy_loss(logits, batch.labels, {}, at::Reduction::Sum).item<double>();
  const at::Tensor answers = logits.argmax(-1);
  const at::Tensor right = answers.eq(batch.labels);
  scores.right = right.sum().item<std::int64_t>();
  if (batch.candidates.defined()) {
    const at::Tensor known = answers.unsqueeze(1).eq(batch.candidates).any(1);
    scores.from_context = true;
    scores.wrong_from_context = known.logical_and(right.logical_not()).sum().item<std::int64_t>();
    scores.wrong_from_elsewhere = scores.questions - scores.right - scores.wrong_from_context;
  } else if (batch.positions.defined()) {
    return scores;  // of a text, whose bytes are not classes
  } else {
    const at::Tensor places = (batch.labels * logits.size(1) + answers).cpu();
    scores.confusion.assign(static_cast<std::size_t>(logits.size(1) * logits.size(1)), 0);
    for (std::int64_t i = 0; i < scores.questions; ++i) {
      ++scores.confusion[static_cast<std::size_t>(places.data_ptr<std::int64_t>()[i])];
    }
  }
  const at::Tensor flags = right.cpu();
  const at::Tensor distances = batch.distances.defined() ? batch.distances.cpu() : at::Tensor();
  const at::Tensor labels = batch.labels.cpu();
  const auto count = [](Scores::Share& share, bool is_right) {
    ++share.questions;
    share.right += is_right;
  };
  for (std::int64_t i = 0; i < scores.questions; ++i) {
    const bool is_right = flags.data_ptr<bool>()[i];
    const std::int64_t distance = distances.defined() ? distances.data_ptr<std::int64_t>()[i] : 0;
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

template <class Value>
double mean_over_examples(const SplitScores& all, const Value& value) {
  double sum = 0;
  double examples = 0;
  for (std::size_t i = 0; i < all.segments.size(); ++i) {
    const auto weight = static_cast<double>(all.segments[i].examples);
    sum += weight * value(all.scores[i]);
    examples += weight;
  }
  return examples > 0 ? sum / examples : 0;
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
  from_context = from_context || other.from_context;
  loss_sum += other.loss_sum;
  add_shares(by_distance, other.by_distance);
  add_shares(by_label, other.by_label);
  if (confusion.empty()) confusion.resize(other.confusion.size());
  for (std::size_t i = 0; i < other.confusion.size(); ++i) confusion[i] += other.confusion[i];
}

double SplitScores::accuracy() const {
  return mean_over_examples(*this, [](const Scores& one) { return one.accuracy(); });
}

double SplitScores::loss() const {
  return mean_over_examples(*this, [](const Scores& one) { return one.loss(); });
}

Scores SplitScores::sum() const {
  Scores all;
  for (const Scores& one : scores) all.add(one);
  return all;
}

at::Tensor labelled_logits(Model& model, const Batch& batch, const Dropout& dropout) {
  if (batch.real.defined()) model.expect_readable(batch.real);
  const at::Tensor mask = key_mask_of(batch);
  const at::Tensor features = model.features(batch.input(), mask, dropout);
  if (!batch.positions.defined()) return model.classified(features, mask);
  const at::Tensor asked = features.flatten(0, 1).index_select(0, batch.positions);
  return model.head(batch.places.defined() ? model.decoded(asked, batch.places) : asked);
}

Batch to_device(const Batch& batch, const at::Device& device) {
  if (device.is_cpu()) return batch;
  Batch there = batch;
  for (at::Tensor* tensor :
       {&there.tokens, &there.positions, &there.labels, &there.distances, &there.candidates,
        &there.places, &there.lengths, &there.real, &there.values}) {
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

SplitScores evaluate_all(Model& model, const DataSet& data, Split split, std::int64_t together,
                         std::int64_t examples) {
  SplitScores all;
  all.segments = data.segments(split);
  const std::int64_t trained = longest(data, Split::train);
  for (std::size_t i = 0; i < all.segments.size(); ++i) {
    const std::int64_t length = all.segments[i].length;
    const std::int64_t some =
        length > trained ? std::max<std::int64_t>(1, together * trained / length) : together;
    all.scores.push_back(evaluate(model, data, split, i, examples, some));
  }
  return all;
}

}  // namespace attnbench::tasks::training
