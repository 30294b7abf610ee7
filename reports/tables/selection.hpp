// Trainings: the learning rate of each mechanism, chosen by validation and never by the test, and
// tables of what it reached.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/tables/grid.hpp"
#include "reports/tables/layout.hpp"
#include "reports/tables/missing.hpp"
#include "reports/tables/quality.hpp"

namespace attnbench::reports {

/// Trainings that differ in their seed alone.
struct Rate {
  double learning_rate = 0;
  std::vector<const result::CellRecord*> cells;  ///< those that ended well, in the plan's order
  std::size_t failed = 0;  ///< those that did not: diverged, out of memory, …
  double validation = 0;   ///< mean of the quality over seeds; 0 without any
  double test = 0;         ///< likewise
};

/// All trainings of one series at one place of the axis.
struct Selection {
  std::string series;
  std::optional<Json> x;      ///< the axis' value; nothing where the series has none
  std::vector<Rate> rates;    ///< ascending
  std::size_t chosen = 0;     ///< index into `rates`
  bool at_edge = false;       ///< a rate beyond those that were tried might be better still
  bool converged = false;     ///< every seed of the chosen rate converged
  std::size_t at_chance = 0;  ///< seeds of the chosen rate that have learned nothing
  std::size_t best_test = 0;  ///< the rate whose mean test is best: for comparisons with papers
  const Quality* quality = nullptr;  ///< what the rates are judged by; never null

  const Rate& choice() const { return rates[chosen]; }
};

/// The selections of a panel's trainings, in the panel's order; without the places at which none
/// ended well. The rate is chosen by the best mean validation over seeds (the greatest accuracy, or
/// the least loss), among those at which no seed failed if there are any; of equals the least. It
/// is at the edge where it is the least or the greatest that was tried, unless it cannot be
/// bettered (validation accuracy 1).
std::vector<Selection> selections(const Panel& panel);

/// The panel's series of which no training ended well at some place; without those that are
/// unsupported or ran out of memory.
std::vector<Missing> missing_trainings(const Panel& panel);

bool has_trainings(const Panel& panel);

/// The quality on the test at the learning rate that validation chose, that rate, how wrong answers
/// are wrong, the quality on examples trained on, state, speed; of language models, bits per byte
/// by the length of a sequence; and what the test itself would have chosen, where that is another
/// rate.
std::vector<Grid> training_grids(const Panel& panel);

}  // namespace attnbench::reports
