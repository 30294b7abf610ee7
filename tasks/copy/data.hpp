// The sequence duplication task (Katharopoulos et al. 2020, section 4.1.1, after Kitaev et al.
// 2020): n symbols, a separator, and the same symbols once more,
//
//   s_1 … s_n 0 s_1 … s_n 0 0 … 0,
//
// n uniform from T / 4 to (T - 1) / 2 - 1. What is learned is the next token from the last symbol
// on, as in the authors' code: the separator, whose place nobody can know, and the n symbols that
// come again. What is asked are the symbols.
#pragma once

#include "tasks/training/examples_data.hpp"

namespace attnbench::tasks::copy {

using learning::Split;

/// Examples of each split, and what all of them are made of.
struct Plan : learning::BySplit<std::int64_t> {
  std::int64_t length = 128;     ///< tokens T, at least 4
  std::int64_t vocabulary = 11;  ///< the separator 0 and the symbols 1, 2, …
  std::uint64_t seed = 0;
};

/// The tokens of one example, and how many symbols are to be copied.
struct Example {
  std::vector<std::int64_t> tokens;
  std::int64_t symbols = 0;
};

Example make_example(const Plan& plan, Split split, std::uint64_t number);

class CopyData final : public learning::SheetData {
 public:
  /// Throws UsageError for a length below 4 or a vocabulary without two symbols.
  explicit CopyData(const Plan& plan);
  std::vector<learning::SegmentSize> segments(Split split) const override;
  const Plan& plan() const { return plan_; }

 private:
  learning::Sheet asked(Split split, std::size_t segment, std::uint64_t number) const override;
  learning::Sheet learned(Split split, std::size_t segment, std::uint64_t number) const override;

  Plan plan_;
};

}  // namespace attnbench::tasks::copy
