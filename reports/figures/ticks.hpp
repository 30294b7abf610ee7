// Ticks of axes. Vega's own logarithmic ticks are too few or too many.
#pragma once

#include <set>
#include <vector>

#include "core/json_object.hpp"

namespace attnbench::reports {

/// Whether sizes grow by factors (256, 512, 1024, …) or tenfold, so that logarithms suit them.
bool grows_by_factors(const std::vector<double>& values);

/// Powers of ten around `values`, which are positive, with more between them where they are few,
/// and even steps within a factor of two. A logarithmic axis' own ticks are nine a decade, which
/// grids turn into a grey wall.
Json decade_ticks(const std::vector<double>& values);

/// `ticks` with their doubles wherever neighbours are more than a factor of four apart.
std::set<double> without_gaps(std::set<double> ticks);

/// The powers of two from just below to just above `values`, which are positive.
Json powers_of_two(const std::vector<double>& values);

}  // namespace attnbench::reports
