// What trainings learned from: those of one data set belong in one figure, and others in another.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/tables/layout.hpp"

namespace attnbench::reports {

/// The settings that tell the data of a cell of `panel` from that of others: its facets and, where
/// it is a choice of data, its place `x` on the axis. Width and heads are the model's.
std::vector<std::pair<std::string, std::string>> data_of(const result::Panel& panel,
                                                         const nlohmann::json* x);

/// The panel's cells by data set, as panels with the data among their facets; the panel itself
/// where there is but one.
std::vector<result::Panel> by_data(const result::Panel& panel);

}  // namespace attnbench::reports
