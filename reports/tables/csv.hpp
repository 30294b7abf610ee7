// The result as tidy tables for other programs: one line per measurement, one column per variable.
// docs/results.md says what each column means.
#pragma once

#include <string>
#include <vector>

#include "core/result/document.hpp"

namespace attnbench::reports {

/// A line for each cell and each of its timings (one line for a cell without timings),
/// all numbers unrounded in the units of their columns. The fixed columns come first, then every
/// other metric, number of a training and setting that a cell of the result has, sorted by name.
std::string csv_table(const result::Result& result);

/// A line for each sample of each timing. Empty but for its header where nothing was timed.
std::string csv_samples(const result::Result& result);

/// The columns that every csv_table has, in order.
std::vector<std::string> fixed_csv_columns();

}  // namespace attnbench::reports
