#include "tasks/mqar/data.hpp"

namespace attnbench::tasks::mqar {

const std::vector<Segment>& Plan::of(Split split) const {
  return split == Split::train ? train : split == Split::validation ? validation : test;
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
                     segment.length, segment.examples, static_cast<double>(segment.pairs)});
  }
  return sizes;
}

learning::Batch RecallData::batch(Split split, std::size_t segment,
                                  const std::vector<std::int64_t>& examples) const {
  std::vector<Example> sheets;
  for (const std::int64_t number : examples) {
    sheets.push_back(make_example(plan_.recall, plan_.of(split).at(segment), plan_.seed, split,
                                  segment, static_cast<std::uint64_t>(number)));
  }
  return learning::batch_of(sheets, tokens_per_position(plan_.recall));
}

}  // namespace attnbench::tasks::mqar
