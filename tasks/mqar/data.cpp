#include "tasks/mqar/data.hpp"

namespace attnbench::tasks::mqar {

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

Example RecallData::asked(Split split, std::size_t segment, std::uint64_t number) const {
  return make_example(plan_.recall, plan_.of(split).at(segment), plan_.seed, split, segment,
                      number);
}

std::int64_t RecallData::tokens_per_position() const {
  return mqar::tokens_per_position(plan_.recall);
}

}  // namespace attnbench::tasks::mqar
