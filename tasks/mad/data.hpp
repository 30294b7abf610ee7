// Examples of one exercise as the batches of a trainer.
#pragma once

#include "tasks/training/examples_data.hpp"
#include "tasks/mad/exercise.hpp"

namespace attnbench::tasks::mad {

/// Examples of each split, and what all of them are made of.
struct Plan : learning::BySplit<std::int64_t> {
  Rules rules;
  std::uint64_t seed = 0;
};

class MadData final : public learning::SheetData {
 public:
  /// Throws UsageError where the rules cannot be kept.
  explicit MadData(const Plan& plan);
  std::vector<learning::SegmentSize> segments(Split split) const override;
  const Plan& plan() const { return plan_; }

 private:
  Sheet asked(Split split, std::size_t segment, std::uint64_t number) const override;
  Sheet learned(Split split, std::size_t segment, std::uint64_t number) const override;

  Plan plan_;
};

}  // namespace attnbench::tasks::mad
