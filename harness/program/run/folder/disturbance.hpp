// Disturbance: which rounds of a cell count, and when too few do. What marks a round while it is
// measured is in harness/measure/disturbed_round.hpp; docs/measuring.md has all of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/result/record.hpp"

namespace attnbench::run {

/// Seconds of an undisturbed calibration: the lower quartile over the rounds of a run that were
/// timed on the CPU. `records` by cell id; 0 where there is none.
double usual_calibration(const std::map<std::string, std::vector<result::RoundRecord>>& records);

/// What disturbed a round's timing of one WHAT (preempted, stolen, neighbours, crowded, slow);
/// empty where it counts. Without `usual` (0) none is slow.
std::string disturbed_by(const result::TimingRound& timing, double usual);

/// Whether `counted` rounds of `all` are enough for a WHAT: half of them, and one.
bool enough_rounds(std::size_t counted, std::size_t all);
/// Whether an interval is too wide for its median to mean anything.
bool too_wide(double low, double median, double high);

/// Why a cell with this combined `timing` is disturbed, and what to do; empty where it is not.
std::string disturbance(const std::map<std::string, result::Timing>& timing);
/// Why a crossover is disturbed, where `disturbed` of its `all` rounds were; empty where it is not.
std::string search_disturbance(std::size_t disturbed, std::size_t all);
/// Whether the CPU of a training was taken by others; its record's `measured` says so.
bool disturbed_training(const result::Measured& measured);

/// Whether other processes took too much of an ok round.
bool is_disturbed(const result::Measured& measured);

}  // namespace attnbench::run
