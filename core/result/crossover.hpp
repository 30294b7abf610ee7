// A crossover over rounds: the length from which on a mechanism is faster than the exact one, with
// an interval, or on which side of the searched lengths it lies. crossover.cpp says what each
// member is; lengths are in tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json_schema.hpp"

namespace attnbench::result {

/// A change of sign between two lengths.
struct Crossing {
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::string faster_from_high;  ///< empty where an old record does not say
  Values further;

  double middle() const;  ///< in logarithms
};

struct Efficiency {
  double length = 0;
  std::optional<double> low;
  std::optional<double> high;
  double r2_exact = 0;
  double r2_mechanism = 0;
};

/// A length that a round compared, or left out.
struct ComparedLength {
  std::optional<std::int64_t> length;
  std::string faster;
  std::string reason;
  std::optional<double> seconds;
  std::optional<double> exact_seconds;
  std::optional<double> ratio;
  std::optional<double> ratio_low;
  std::optional<double> ratio_high;
  std::optional<std::int64_t> pairs;
  std::string stop;
  std::string implementation;
  std::string against;
  Values further;
};

/// What the search of one round found.
struct CrossoverRound {
  std::string verdict;
  std::optional<std::int64_t> low;
  std::optional<std::int64_t> high;
  std::string implementation;
  std::string against;
  std::int64_t length_minimum = 0;
  std::int64_t length_maximum = 0;
  std::string stopped;
  std::optional<std::vector<Crossing>> crossings;
  std::optional<Efficiency> efficiency;
  std::optional<bool> disturbed;
  std::optional<std::vector<ComparedLength>> lengths;
  Values further;
};

/// The joined crossover of a cell.
struct Crossover {
  std::string verdict;
  std::map<std::string, std::int64_t> verdicts;
  std::optional<double> length;
  std::optional<double> low;
  std::optional<double> high;
  std::string interval;
  std::string implementation;
  std::string against;
  std::int64_t length_minimum = 0;
  std::int64_t length_maximum = 0;
  std::string stopped;
  std::optional<std::vector<Crossing>> crossings;
  std::optional<Efficiency> efficiency;
  std::optional<std::size_t> disturbed;
  std::vector<CrossoverRound> rounds;
  Values further;

  std::size_t disturbed_rounds() const;
};

ATTNBENCH_DESCRIBED(Crossing);
ATTNBENCH_DESCRIBED(Efficiency);
ATTNBENCH_DESCRIBED(ComparedLength);
ATTNBENCH_DESCRIBED(CrossoverRound);
ATTNBENCH_DESCRIBED(Crossover);

/// Whether a round does not count: it says so, or most of the lengths that it compared stopped as
/// disturbed.
bool is_disturbed(const CrossoverRound& round);

/// The crossover of a cell over `rounds`, those that ended well, at least one. Disturbed rounds are
/// kept and counted (`disturbed`), but not considered; where all are disturbed, the verdict is
/// undecided.
///
/// Verdicts found, below, above and none are ranked, a crossover below what was searched before all
/// that were found, one above or none after them; the one in the middle is the cell's. length is
/// the middle of the rounds' intervals, in logarithms. low and high bound it over rounds: by order
/// statistics of the rounds' ends at 95 % where there are six or more (interval "order"), else the
/// range of the rounds ("range"), or the one round's own ("search").
/// A verdict that is not ranked (reverse, several, undecided) is the cell's where more than half of
/// the rounds came to it; where no verdict stands the cell's is undecided.
Crossover crossover_over(const std::vector<CrossoverRound>& rounds);

/// The metrics of a crossover: {crossover_length, crossover_length_low, crossover_length_high,
/// efficiency_length, efficiency_length_low, efficiency_length_high}, in tokens: those that there
/// are.
Values crossover_metrics(const Crossover& crossover);

/// The crossover in words: "320 (290 to 352)", "below 64", "above 16384", "none: slower up to
/// 16384", "several: 96, 700", "reverse: slower from 512 on", "undecided", "undecided, 3 of 5
/// rounds disturbed".
std::string crossover_text(const Crossover& crossover);

}  // namespace attnbench::result
