// The gate: what counts as a change of speed, and how many rounds may be spent to tell. A suite
// names it under "gate".
#pragma once

#include <cstddef>
#include <vector>

#include "core/json_object.hpp"

namespace attnbench::compare {

struct Gate {
  double relative_change = 0.03;  ///< a change must be greater to count
  double absolute_seconds = 0;    ///< and greater than this
  double confidence = 0.95;       ///< confidence of all verdicts together
  int rounds = 12;                ///< rounds before the first look
  int rounds_most = 48;           ///< most rounds of a cell that stays unclear
  double seconds_most = 0;        ///< no rounds but the first that would end later; 0 = no limit
  /// Rounds in fresh processes that confirm what is SLOW; 0 = none. Twelve confirm a true 5 % in 23
  /// of 27 runs only, and twice as many cost little, since they are of the SLOW cells alone.
  int confirm = 24;

  bool operator==(const Gate&) const = default;
};
ATTNBENCH_JSON(Gate);

/// Throws UsageFailure for values that allow no verdict: fewer rounds in all than at first, a
/// confidence that is none, a confirmation of so few rounds that it can never succeed.
void validate(const Gate& gate);

/// The looks: numbers of rounds after which a verdict on a cell is attempted: rounds, twice as
/// many, … and rounds_most.
std::vector<int> looks(const Gate& gate);

/// The numbers of rounds up to the first look after which it is decided which cells can complete
/// them within seconds_most: the first, a third, two thirds and all. Only all of them where time
/// has no limit.
std::vector<int> stages(const Gate& gate);

/// The confidence of each interval, Bonferroni-corrected: the error is shared equally by all pairs
/// and looks, so that all verdicts together have the gate's confidence.
double confidence_of_each(const Gate& gate, std::size_t pairs);

/// The fewest rounds that give an interval of that confidence.
int rounds_needed(double confidence);

/// The relative change that counts for a cell of that time: the greater of both bars.
double bar_of(const Gate& gate, double base_seconds);

}  // namespace attnbench::compare
