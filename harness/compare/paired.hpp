// Two sides measured in turns by one run: the verdict for each size. What the machine does in a
// round falls on both, so their ratio within the round is compared, and not their times.
#pragma once

#include <string>
#include <vector>

#include "harness/compare/compare.hpp"
#include "core/failure.hpp"

namespace attnbench::compare {

/// Labels in the run's suite. The control is the base once more.
struct Sides {
  std::string base;
  std::string changed;
  std::string control;
};

/// Puts the cells of one size side by side (base, new, control), in the order of the sizes. A run
/// that takes every other round from the last cell to the first then has them in turns: A B B A.
std::vector<Json> in_turns(const std::vector<Json>& cells);

/// The statistic is the median over rounds of the logarithm of new / base, its interval that of the
/// order statistics, at 95 % for all sizes together. `slow`, `fast` and `same` need all of the
/// interval beyond, or within, the margin. A round in which other programs had the CPU while a side
/// or the control was timed is left out whole and counted. What is left is `unclear` where it is
/// too little, where a cell is disturbed or did not end well, and where the control's interval is
/// beyond the margin: then the machine moved.
Comparison paired(const Json& result, const Sides& sides, double margin = 0.03);

/// What they come to: undecided where any pair is unclear; of a `gate`, failed where one is slow.
ExitCode exit_code(const Comparison& comparison, bool gate);

}  // namespace attnbench::compare
