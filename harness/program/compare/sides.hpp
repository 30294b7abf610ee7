// Sides: the cells of a suite on two sides, matched, and what a run of them must remember to be
// resumed.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/cell.hpp"
#include "core/process/fingerprint.hpp"
#include "harness/program/compare/paired.hpp"

namespace attnbench::compare {

/// The rule by which the cells of two sides are matched: the same task, device and values of their
/// axes.
struct MatchRule {
  bool by_label = true;           ///< whether labels must match; else one label a side
  std::set<std::string> ignored;  ///< settings and options in which the sides differ on purpose
  bool one_build = false;         ///< whether both are one build: equal cells are left out
};

/// A cell that one side alone has.
struct UnmatchedCell {
  std::string name;
  bool added = false;  ///< the new side has it
};
ATTNBENCH_JSON(UnmatchedCell);

struct Matched {
  std::vector<Cell> cells;  ///< base, new and control of each match, in turns
  std::vector<Match> matches;
  std::vector<UnmatchedCell> missing;
  std::size_t equal = 0;  ///< cells left out because both sides are one
};

/// The cells' ids end in -base, -new and -again, and so do the labels of the last two. Throws
/// UsageFailure where two cells of a side cannot be told apart.
Matched match_cells(const std::vector<Cell>& base, const std::vector<Cell>& changed,
                    const MatchRule& rule);

/// The definition of a run of `attnbench ab`, kept in its journal's header.
struct SidesPlan {
  std::string suite;  ///< as typed; empty for two mechanisms
  std::string base;   ///< the sides as typed
  std::string changed;
  std::string control;
  Gate gate;
  std::vector<Match> matches;  ///< empty for two mechanisms, which are matched by their labels
  std::vector<UnmatchedCell> missing;
  std::vector<process::Build> builds;  ///< two, or none where this program's worker measures both

  Sides sides() const { return {base, changed, control}; }
  /// The ids of the cells that the second build measures.
  std::set<std::string> cells_of_second() const;
};
ATTNBENCH_JSON(SidesPlan);

/// Pairs for cells that one side alone has.
void add_missing(Comparison& comparison, const std::vector<UnmatchedCell>& missing);

}  // namespace attnbench::compare
