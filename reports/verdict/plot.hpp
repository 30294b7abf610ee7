// The table that ranks as a picture for the terminal: times over the axis, a line a mechanism.
#pragma once

#include <cstddef>
#include <string>

#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

/// The times of `ranking` over its axis, both logarithmic, in dots of braille, `columns` wide: each
/// line in the colour of its mechanism where `colour`, with its label at its end. Empty where it
/// ranks by quality, fewer than two lines have two points above 0, there are more than have room
/// for a label, or `columns` are few.
std::string plot_of(const Ranking& ranking, std::size_t columns, bool colour);

}  // namespace attnbench::reports::verdict
