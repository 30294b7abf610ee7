// SheetData: a data set whose examples are sheets, each made alone.
#pragma once

#include "tasks/training/examples.hpp"

namespace attnbench::tasks::learning {

class SheetData : public DataSet {
 public:
  Batch batch(Split split, std::size_t segment,
              const std::vector<std::int64_t>& examples) const override;
  Batch questions(Split split, std::size_t segment,
                  const std::vector<std::int64_t>& examples) const override;

 protected:
  /// What is asked of one example. Safe to call from several threads, as is `learned`.
  virtual Sheet asked(Split split, std::size_t segment, std::uint64_t number) const = 0;
  /// What is learned from it, where that is not what is asked.
  virtual Sheet learned(Split split, std::size_t segment, std::uint64_t number) const {
    return asked(split, segment, number);
  }
  virtual std::int64_t tokens_per_position() const { return 1; }
};

}  // namespace attnbench::tasks::learning
