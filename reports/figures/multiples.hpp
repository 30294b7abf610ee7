// Small multiples: a figure of many lines as a small one for each series, over the same axes.
#pragma once

#include <cstddef>

#include "core/json_object.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::reports {

/// From this many series on, lines that lie over each other cannot be told apart.
inline constexpr std::size_t crowded = 6;

/// `spec`, a complete layered specification, as a facet for each series of `panel`, in their order:
/// its own marks in colour, the lines of all others in grey, the same scales everywhere. Rows of
/// layers with data of their own that belong to a series go into its facet, the others into all.
/// The legend of series and its selection are gone: the headers name them.
result::Json small_multiples(result::Json spec, const result::Panel& panel);

}  // namespace attnbench::reports
