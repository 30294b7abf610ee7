// The timings of a cell over its rounds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/result/record.hpp"

namespace attnbench::run {

/// Every WHAT timed in an ok round, in the order of `rounds`. Rounds that were disturbed, by
/// `usual_calibration` (0 = not known) as well, are marked and do not count, unless too few others
/// do. Calibrated times are scaled to the cell's median calibration.
std::map<std::string, result::Timing> timing_over(const std::vector<result::RoundRecord>& rounds,
                                                  double usual_calibration);

/// The metrics of ok rounds: the median where one was measured in several rounds, of those that
/// nothing disturbed where there are any, else what the first round said.
Values metrics_over(const std::vector<result::RoundRecord>& rounds, double usual_calibration);

}  // namespace attnbench::run
