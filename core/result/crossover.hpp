// A crossover over rounds: where a mechanism overtakes the exact one, as a length with an interval,
// or, where it lies outside of what was searched, what is known of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attnbench::result {

using Json = nlohmann::json;

/// `rounds`: the `crossover` sections of the rounds that ended well, at least one, each with a
/// verdict (see record.hpp), low and high where it has them, and the lengths that were compared.
/// A round that says `disturbed: true` is kept and counted (`disturbed`), and has no vote; where
/// all are, the verdict is undecided.
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

/// "320 (290 to 352)", "below 64", "above 16384", "none: slower up to 16384", "several: 96, 700",
/// "reverse: slower from 512 on", "undecided", "undecided, 3 of 5 rounds disturbed".
std::string crossover_text(const Json& crossover);

}  // namespace attnbench::result
