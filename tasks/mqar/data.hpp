// Recall examples as the batches of a trainer.
#pragma once

#include "tasks/training/examples_data.hpp"
#include "tasks/mqar/recall.hpp"

namespace attnbench::tasks::mqar {

/// The segments of each split, and what all of them are made of.
struct Plan : learning::BySplit<std::vector<Segment>> {
  Recall recall;
  std::uint64_t seed = 0;
};

class RecallData final : public learning::SheetData {
 public:
  /// Throws UsageError where a segment cannot be made.
  explicit RecallData(Plan plan);
  std::vector<learning::SegmentSize> segments(Split split) const override;
  const Plan& plan() const { return plan_; }

 private:
  Example asked(Split split, std::size_t segment, std::uint64_t number) const override;
  std::int64_t tokens_per_position() const override;

  Plan plan_;
};

}  // namespace attnbench::tasks::mqar
