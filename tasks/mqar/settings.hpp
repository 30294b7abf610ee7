// Settings of the task mqar: its data, and what every training lets one choose.
#pragma once

#include <vector>

#include "core/option.hpp"
#include "tasks/mqar/data.hpp"

namespace attnbench::tasks::mqar {

/// What the data are made of, and vocabulary: those that `attnbench data` reads.
std::vector<Option> data_settings();

/// `run_seed` is that of the whole run. Throws UsageError where a segment cannot be made.
Plan plan_from(const Options& settings, std::uint64_t run_seed);

}  // namespace attnbench::tasks::mqar
