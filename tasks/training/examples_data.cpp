#include "tasks/training/examples_data.hpp"

namespace attnbench::tasks::learning {

Batch SheetData::batch(Split split, std::size_t segment,
                       const std::vector<std::int64_t>& examples) const {
  std::vector<Sheet> sheets;
  for (const std::int64_t number : examples) {
    sheets.push_back(learned(split, segment, static_cast<std::uint64_t>(number)));
  }
  return batch_of(sheets, tokens_per_position());
}

Batch SheetData::questions(Split split, std::size_t segment,
                           const std::vector<std::int64_t>& examples) const {
  std::vector<Sheet> sheets;
  for (const std::int64_t number : examples) {
    sheets.push_back(asked(split, segment, static_cast<std::uint64_t>(number)));
  }
  return batch_of(sheets, tokens_per_position());
}

}  // namespace attnbench::tasks::learning
