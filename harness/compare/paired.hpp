// Two sides measured in turns by one run, with a verdict for each size. The ratio within a round is
// compared: the machine's noise in a round affects both sides.
#pragma once

#include <string>
#include <vector>

#include "core/failure.hpp"
#include "harness/compare/compare.hpp"

namespace attnbench::compare {

/// Labels in the run's suite. The control is a second copy of the base.
struct Sides {
  std::string base;
  std::string changed;
  std::string control;
};

/// Orders cells by size, then base, new, control. A run that reverses every other round then
/// measures A B B A.
std::vector<Json> in_turns(const std::vector<Json>& cells);

/// The statistic is the median over rounds of log(new / base), with its order-statistic interval at
/// 95 % for all sizes together. `slow`, `fast` and `same` need the whole interval beyond, or
/// within, the margin. A round that other programs disturbed, on either side or the control, is
/// left out and counted. The verdict is `unclear` with too few rounds, with a cell that is
/// disturbed or not ok, and where the control's interval is beyond the margin.
Comparison paired(const Json& result, const Sides& sides, double margin = 0.03);

/// undecided where a pair is unclear; with `gate`, failed where one is slow.
ExitCode exit_code(const Comparison& comparison, bool gate);

}  // namespace attnbench::compare
