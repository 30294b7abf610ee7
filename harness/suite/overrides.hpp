// Layers: preset < set < the task's set < entry < --set, laid over each other into the axes of one
// mechanism entry under one task.
#pragma once

#include <string>
#include <vector>

#include "harness/suite/axes.hpp"
#include "harness/suite/suite_entries.hpp"
#include "harness/suite/problems.hpp"
#include "harness/suite/profile.hpp"
#include "harness/suite/set_flag.hpp"

namespace attnbench::suite {

/// Options that the mechanism does not have, and settings that the task does not have, are left
/// out.
Axes lay_out(const ProfiledSuite& suite, const Group& group, const Entry& entry,
             const std::vector<SetFlag>& flags, Problems& problems);

/// Files keys that no task and no mechanism of the suite knows; for an entry's own keys, that
/// neither its mechanism nor a task knows.
void check_keys(const ProfiledSuite& suite, const std::vector<Group>& groups,
                const std::vector<Entry>& entries, const std::vector<SetFlag>& flags,
                Problems& problems);

/// Empty, or why `word` names no device.
std::string device_complaint(const std::string& word);

}  // namespace attnbench::suite
