// Sheet: one example on its own, and how several become a batch.
#pragma once

#include <vector>

#include "tasks/training/data.hpp"

namespace attnbench::tasks::learning {

/// What is asked at a position, and how far back the answer stands.
struct Question {
  std::int64_t position = 0;
  std::int64_t answer = 0;
  std::int64_t distance =
      0;  ///< positions from the answer's to the question's; 0 = it stands nowhere
  std::int64_t place = -1;  ///< which a decoder is asked for; -1 without a decoder
};

struct Sheet {
  std::vector<std::int64_t> tokens;      ///< [T], or [T * P] where P tokens share a position
  std::vector<Question> questions;       ///< by position, then place
  std::vector<std::int64_t> candidates;  ///< answers that stand somewhere in the sequence
};

/// Sheets of one length, at least one. Places are there where every question has one.
Batch batch_of(const std::vector<Sheet>& sheets, std::int64_t tokens_per_position = 1);

}  // namespace attnbench::tasks::learning
