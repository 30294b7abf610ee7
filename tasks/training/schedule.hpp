// Schedule: the learning rate over the steps of training, as a share of the greatest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnbench::tasks::learning {

/// After a linear warm-up: constant; half a cosine down to 0, by step or by epoch (all steps of an
/// epoch alike, as in Zoology's code); a line down to 0; the inverse square root of the step; or
/// constant with one drop to a tenth.
enum class Schedule { constant, cosine, cosine_by_epoch, linear, inverse_square_root, drop };

const char* to_string(Schedule schedule);
std::vector<std::string> schedule_words();
/// Throws UsageError listing the valid words.
Schedule schedule_from(const std::string& word);

struct Course {
  Schedule schedule = Schedule::cosine;
  std::int64_t warm_up_steps = 0;
  std::int64_t steps_per_epoch = 1;
  std::int64_t epochs = 1;
  std::int64_t drop_after = 0;  ///< steps

  std::int64_t steps() const { return steps_per_epoch * epochs; }
  /// Of the step with this number, from 0 on; above 0 up to 1.
  double factor(std::int64_t step) const;
};

}  // namespace attnbench::tasks::learning
