// Recall examples as the batches of a trainer.
#pragma once

#include "tasks/learning/data.hpp"
#include "tasks/mqar/recall.hpp"

namespace attnbench::tasks::mqar {

/// What all three splits are made of.
struct Plan {
  Recall recall;
  std::vector<Segment> train;
  std::vector<Segment> validation;
  std::vector<Segment> test;
  std::uint64_t seed = 0;

  const std::vector<Segment>& of(Split split) const;
};

class RecallData final : public learning::DataSet {
 public:
  /// Throws UsageError where a segment cannot be made.
  explicit RecallData(Plan plan);
  std::vector<learning::SegmentSize> segments(Split split) const override;
  learning::Batch batch(Split split, std::size_t segment,
                        const std::vector<std::int64_t>& examples) const override;
  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace attnbench::tasks::mqar
