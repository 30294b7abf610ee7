// Examples of one exercise as the batches of a trainer.
#pragma once

#include "tasks/mad/exercise.hpp"

namespace attnbench::tasks::mad {

struct Plan {
  Rules rules;
  std::int64_t validation = 0;
  std::int64_t test = 0;
  std::uint64_t seed = 0;
};

class MadData final : public learning::DataSet {
 public:
  /// Throws UsageError where the rules cannot be kept.
  explicit MadData(const Plan& plan);
  std::vector<learning::SegmentSize> segments(Split split) const override;
  learning::Batch batch(Split split, std::size_t segment,
                        const std::vector<std::int64_t>& examples) const override;
  learning::Batch questions(Split split, std::size_t segment,
                            const std::vector<std::int64_t>& examples) const override;
  const Plan& plan() const { return plan_; }

 private:
  std::vector<Sheet> sheets(Split split, const std::vector<std::int64_t>& examples) const;

  Plan plan_;
};

}  // namespace attnbench::tasks::mad
