// A crossover over rounds: the length from which on a mechanism is faster than the exact one, with
// an interval, or on which side of the searched lengths it lies.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::result {

using Json = nlohmann::json;

/// `rounds`: the `crossover` sections of the rounds that ended well, at least one, each with a
/// verdict (see core/schema/result.schema.json), low and high where it has them, and the lengths
/// that were compared. Disturbed rounds are kept and counted (`disturbed`), but not considered;
/// where all are disturbed, the verdict is undecided.
///
/// Verdicts found, below, above and none are ranked, a crossover below what was searched before all
/// that were found, one above or none after them; the one in the middle is the cell's. length is
/// the middle of the rounds' intervals, in logarithms. low and high bound it over rounds: by order
/// statistics of the rounds' ends at 95 % where there are six or more (interval "order"), else the
/// range of the rounds ("range"), or the one round's own ("search"); an end that is open is absent.
/// A verdict that is not ranked (reverse, several, undecided) is the cell's where more than half of
/// the rounds came to it; where no verdict stands the cell's is undecided.
Json crossover_over(const std::vector<Json>& rounds);

/// {crossover_length, crossover_length_low, crossover_length_high, efficiency_length,
/// efficiency_length_low, efficiency_length_high}, in tokens: those that there are.
Json crossover_metrics(const Json& crossover);

/// A change of sign between two lengths.
struct Crossing {
  double low = 0;
  double high = 0;

  double middle() const;  ///< in logarithms
};

/// Where fitted lines of both times meet.
struct Efficiency {
  double length = 0;
  double r2_exact = 0;
  double r2_mechanism = 0;
};

/// The joined crossover of a cell, lengths in tokens; an end that is open is absent.
struct Crossover {
  std::string verdict;
  std::optional<double> length;
  std::optional<double> low;
  std::optional<double> high;
  std::string interval;
  std::string implementation;
  std::string against;
  double length_minimum = 0;
  double length_maximum = 0;
  std::vector<Crossing> crossings;
  std::optional<Efficiency> efficiency;
  std::size_t rounds = 0;
  std::size_t disturbed = 0;  ///< of `rounds`
  std::size_t left_out = 0;   ///< rounds that were not considered
};
/// Nothing where the cell has none.
std::optional<Crossover> crossover_of(const Json& cell);
Crossover crossover_from(const Json& crossover);

/// "320 (290 to 352)", "below 64", "above 16384", "none: slower up to 16384", "several: 96, 700",
/// "reverse: slower from 512 on", "undecided", "undecided, 3 of 5 rounds disturbed".
std::string crossover_text(const Crossover& crossover);

}  // namespace attnbench::result
