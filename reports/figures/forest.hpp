// The verdicts of `attnbench ab` as a picture: a ratio with its interval for each pair.
#pragma once

#include <optional>

#include "reports/figures/figure.hpp"
#include "reports/figures/verdicts.hpp"

namespace attnbench::reports {

/// A line for each pair that has a ratio, in the run's order: the ratio new / base as a point
/// coloured by its verdict, its interval as a bar, on a logarithmic axis with a rule at 1, the
/// margin as a band, and the base against itself as a thin grey bar. The caption names pairs
/// without a ratio. Nothing where no pair has one.
std::optional<Figure> forest_figure(const Verdicts& verdicts);

}  // namespace attnbench::reports
