// The sequence duplication task (Katharopoulos et al. 2020, section 4.1.1, after Kitaev et al.
// 2020): n symbols, a separator, and the same symbols once more,
//
//   s_1 … s_n 0 s_1 … s_n 0 0 … 0,
//
// n uniform from T / 4 to (T - 1) / 2 - 1. As in the authors' code, the learned labels are the next
// tokens from the last symbol on: the separator, whose position cannot be predicted, and the n
// repeated symbols. The scored labels are the repeated symbols.
#pragma once

#include "tasks/training/data.hpp"

namespace attnbench::tasks::copy {

using training::Example;
using training::Split;

/// The number of examples of each split, and what they have in common.
struct CopyPlan : training::BySplit<std::int64_t> {
  std::int64_t length = 128;     ///< tokens T, at least 4
  std::int64_t vocabulary = 11;  ///< the separator 0 and the symbols 1, 2, …
  std::uint64_t seed = 0;
};

/// The tokens of one example, and the number of symbols to copy.
struct Sequence {
  std::vector<std::int64_t> tokens;
  std::int64_t symbols = 0;
};

Sequence make_sequence(const CopyPlan& plan, Split split, std::uint64_t number);

class CopyData final : public training::ExampleDataSet {
 public:
  /// Throws UsageError for a length below 4 or a vocabulary without two symbols.
  explicit CopyData(const CopyPlan& plan);
  std::vector<training::SegmentSize> segments(Split split) const override;
  const CopyPlan& plan() const { return plan_; }

 private:
  Example scored(Split split, std::size_t segment, std::uint64_t number) const override;
  Example learned(Split split, std::size_t segment, std::uint64_t number) const override;

  CopyPlan plan_;
};

}  // namespace attnbench::tasks::copy
