#include "tasks/mqar/data.hpp"

#include <algorithm>

namespace attnbench::tasks::mqar {

const std::vector<Segment>& Plan::of(Split split) const {
  return split == Split::train ? train : split == Split::validation ? validation : test;
}

std::int64_t Plan::longest() const {
  std::int64_t length = 0;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    for (const Segment& segment : of(split)) length = std::max(length, segment.length);
  }
  return length;
}

RecallData::RecallData(Plan plan) : plan_(std::move(plan)) {
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    for (const Segment& segment : plan_.of(split)) check(plan_.recall, segment);
  }
}

std::vector<learning::SegmentSize> RecallData::segments(Split split) const {
  std::vector<learning::SegmentSize> sizes;
  for (const Segment& segment : plan_.of(split)) {
    sizes.push_back({std::to_string(segment.length) + "x" + std::to_string(segment.pairs),
                     segment.length, segment.examples});
  }
  return sizes;
}

learning::Batch RecallData::batch(Split split, std::size_t segment,
                                  const std::vector<std::int64_t>& examples) const {
  const Segment& shape = plan_.of(split).at(segment);
  const auto rows = static_cast<std::int64_t>(examples.size());
  const std::int64_t together = tokens_per_position(plan_.recall);
  const bool forgetting = plan_.recall.variant == Variant::forgetting;
  const std::int64_t values = shape.pairs + (forgetting ? plan_.recall.updates : 0);
  learning::Batch batch;
  batch.tokens = together == 1 ? at::empty({rows, shape.length}, at::kLong)
                               : at::empty({rows, shape.length, together}, at::kLong);
  const std::int64_t labels = rows * shape.pairs;
  batch.positions = at::empty({labels}, at::kLong);
  batch.labels = at::empty({labels}, at::kLong);
  batch.distances = at::empty({labels}, at::kLong);
  batch.candidates = at::empty({labels, values}, at::kLong);
  auto* tokens = batch.tokens.data_ptr<std::int64_t>();
  auto* positions = batch.positions.data_ptr<std::int64_t>();
  auto* answers = batch.labels.data_ptr<std::int64_t>();
  auto* distances = batch.distances.data_ptr<std::int64_t>();
  auto* candidates = batch.candidates.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < rows; ++row) {
    const Example one =
        make_example(plan_.recall, shape, plan_.seed, split, segment,
                     static_cast<std::uint64_t>(examples[static_cast<std::size_t>(row)]));
    tokens = std::copy(one.tokens.begin(), one.tokens.end(), tokens);
    for (const Question& question : one.questions) {
      *positions++ = row * shape.length + question.position;
      *answers++ = question.answer;
      *distances++ = question.distance;
      candidates = std::copy(one.values.begin(), one.values.end(), candidates);
    }
  }
  return batch;
}

}  // namespace attnbench::tasks::mqar
