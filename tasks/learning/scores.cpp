#include "tasks/learning/scores.hpp"

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
  for (std::int64_t i = 0; i < scores.questions; ++i) {
    Scores::Share& share = scores.by_distance[distances.data_ptr<std::int64_t>()[i]];
    ++share.questions;
    share.right += flags.data_ptr<bool>()[i];
  }
  return scores;
}

at::Device device_of(const Model& model) { return model.parameters().front().device(); }

}  // namespace

double Scores::accuracy() const {
  return questions == 0 ? 0 : static_cast<double>(right) / static_cast<double>(questions);
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
  for (const auto& [distance, share] : other.by_distance) {
    by_distance[distance].questions += share.questions;
    by_distance[distance].right += share.right;
  }
}

at::Tensor labelled_logits(Model& model, const Batch& batch, const Dropout& dropout) {
  const at::Tensor features = model.features(batch.tokens, {}, dropout).flatten(0, 1);
  return model.head(features.index_select(0, batch.positions));
}

Batch moved(const Batch& batch, const at::Device& device) {
  if (device.is_cpu()) return batch;
  return {batch.tokens.to(device), batch.positions.to(device), batch.labels.to(device),
          batch.distances.to(device), batch.candidates.to(device)};
}

Scores evaluate(Model& model, const DataSet& data, Split split, std::size_t segment,
                std::int64_t examples, std::int64_t together) {
  const at::NoGradGuard no_grad;
  const std::int64_t last = std::min(examples, data.segments(split).at(segment).examples);
  Scores scores;
  for (std::int64_t first = 0; first < last; first += together) {
    std::vector<std::int64_t> some(static_cast<std::size_t>(std::min(together, last - first)));
    std::iota(some.begin(), some.end(), first);
    const Batch batch = moved(data.batch(split, segment, some), device_of(model));
    scores.add(scores_of(labelled_logits(model, batch), batch));
  }
  return scores;
}

}  // namespace attnbench::tasks::learning
