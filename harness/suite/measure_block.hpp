// The measure block: how long and how often each cell is measured.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "harness/suite/problems.hpp"
#include "harness/suite/profile.hpp"
#include "harness/suite/set_flag.hpp"

namespace attnbench::suite {

/// {rounds, relative_interval, min_samples, max_samples, max_seconds, cell_timeout_seconds}
const nlohmann::json& default_measure();

/// The defaults, with the suite's values and those of --set over them; flags are held against the
/// schema.
nlohmann::json measure_block(const ProfiledSuite& suite, const std::vector<SetFlag>& flags,
                             Problems& problems);

}  // namespace attnbench::suite
