// Two sides measured in turns by one run, with a verdict for each size. The ratio within a round is
// compared: the machine's noise in a round affects both sides.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cell.hpp"
#include "core/failure.hpp"
#include "harness/program/compare/compare.hpp"
#include "harness/program/run/supervise/schedule.hpp"

namespace attnbench::compare {

/// Labels in the run's suite. The control is a second copy of the base.
struct Sides {
  std::string base;
  std::string changed;
  std::string control;
};

/// Orders cells by size, then base, new, control. A run that reverses every other round then
/// measures A B B A.
std::vector<Cell> in_turns(const std::vector<Cell>& cells);

/// The cells of a run that belong together, by id. The control may be empty.
struct Match {
  std::string name;  ///< for people
  std::string base;
  std::string changed;
  std::string control;
};
ATTNBENCH_JSON(Match);

/// The matches of cells whose labels are those of `sides`, one for each size. Empty ids where a
/// side has none.
std::vector<Match> matches_by_label(const result::Result& result, const Sides& sides);

/// The statistic is the median over rounds of log(new / base), with its order-statistic interval at
/// the gate's confidence, Bonferroni-corrected over all pairs and looks. `slow`, `fast` and `same`
/// need the whole interval beyond, or within, the bars. A round that other programs disturbed, on
/// either side or the control, is left out and counted. The verdict is `unclear` with too few
/// rounds, with a cell that is disturbed or not ok, and where the control's interval is beyond the
/// bars. Intervals of signed ranks find more on made-up noise, less in recorded runs, and cover
/// less where rounds depend on each other: README.md has the numbers.
///
/// Where that leaves a pair of cells of one thread unclear for disturbed rounds, all rounds are
/// taken by their least samples: `slow` and `fast` then need the whole interval beyond 1.1, and
/// beyond that of the control in the same rounds.
///
/// A pair is judged at each of the gate's looks by the rounds up to it, until it is clear; so the
/// same rounds give the same verdict, however often the run was interrupted. Rounds from
/// `rounds_most` on confirm: `slow` stands where their interval is above 1 and their median beyond
/// the bars, else it becomes `unclear`.
Comparison paired(const result::Result& result, const Sides& sides,
                  const std::vector<Match>& matches, const Gate& gate);
/// The comparison with a single look, at all rounds, and no confirmation.
Comparison paired(const result::Result& result, const Sides& sides, double margin = 0.03);

/// What a run spends on rounds.
struct Spending {
  double seconds = 0;                      ///< seconds spent so far
  std::map<std::string, double> of_cells;  ///< seconds of one round, by the cell's id
};

/// The rounds to measure next: those of the first look and of unclear pairs, then those that
/// confirm; nothing where none are wanted. Under the gate's seconds_most only pairs whose look ends
/// in time go on: first those whose ratio is beyond the bars after a look, since a change is what
/// is looked for, then the shortest, so that as many as possible have a verdict; the note says how
/// many do not.
std::optional<run::Further> further(const Comparison& comparison, const std::vector<Match>& matches,
                                    const Spending& spending);

/// Says in the reason of each pair that wanted more rounds that the gate's seconds_most left none.
void note_time_limit(Comparison& comparison);

/// The exit code: undecided where a pair is unclear, or none was timed on both sides; with `gate`,
/// failed where one is slow.
ExitCode exit_code(const Comparison& comparison, bool gate);

}  // namespace attnbench::compare
