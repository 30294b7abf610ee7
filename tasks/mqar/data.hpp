// The data of the task mqar: their settings, and recall examples as a data set for training.
#pragma once

#include <vector>

#include "core/option.hpp"
#include "tasks/mqar/recall.hpp"

namespace attnbench::tasks::mqar {

/// Reads segments from "64x4:100000, 128x8:20000" (commas or blanks between): length, pairs and
/// examples of each segment. Throws UsageError.
std::vector<RecallSegment> segments_from(const std::string& text);
std::string to_string(const std::vector<RecallSegment>& segments);

/// The segments of each split, and what their examples have in common.
struct RecallPlan : training::BySplit<std::vector<RecallSegment>> {
  Recall recall;
  std::uint64_t seed = 0;
};

/// All settings of the data, vocabulary included.
std::vector<Option> data_settings();

/// Reads those and data_seed; `run_seed` is that of the whole run. Throws UsageError where segments
/// are not as segments_from expects.
RecallPlan plan_from(const Options& settings, std::uint64_t run_seed);

class RecallData final : public training::ExampleDataSet {
 public:
  /// Throws UsageError where a segment cannot be made.
  explicit RecallData(RecallPlan plan);
  std::vector<training::SegmentSize> segments(Split split) const override;
  const RecallPlan& plan() const { return plan_; }

 private:
  Example scored(Split split, std::size_t segment, std::uint64_t number) const override;
  std::int64_t tokens_per_position() const override;

  RecallPlan plan_;
};

}  // namespace attnbench::tasks::mqar
