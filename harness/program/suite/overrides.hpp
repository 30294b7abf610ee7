// Overrides: preset < shape < set < the task's set < the mechanism's entry < --set. Later ones
// replace earlier ones.
#pragma once

#include <string>
#include <vector>

#include "harness/program/suite/axes.hpp"
#include "harness/program/suite/profile.hpp"
#include "harness/program/suite/shapes.hpp"
#include "harness/program/suite/suite_entries.hpp"

namespace attnbench::suite {

/// The shape that a task's cells have, if any, and the start of messages about it.
struct ChosenShape {
  const ModelShape* shape = nullptr;
  std::string place;
};

/// The axes of one mechanism under one task, without options that the mechanism lacks and settings
/// that the task lacks. Adds values that do not fit to `problems`.
Axes axes_of(const ProfiledSuite& suite, const TaskEntry& task, const MechanismEntry& entry,
             const ChosenShape& chosen, const std::vector<SetFlag>& flags, Problems& problems);

/// Adds keys to `problems` that no task and no mechanism of the suite declares; in a mechanism's
/// own entry, those that neither this mechanism nor a task declares.
void check_keys(const ProfiledSuite& suite, const std::vector<TaskEntry>& tasks,
                const std::vector<MechanismEntry>& entries, const std::vector<SetFlag>& flags,
                Problems& problems);

/// A --set of one value, as a single call takes it, in the type of the mechanism's option. Throws
/// UsageFailure.
OptionValue option_value(const MechanismSpec& mechanism, const SetFlag& flag, bool causal);

/// Why `word` names no device; empty = it names one.
std::string device_complaint(const std::string& word);

}  // namespace attnbench::suite
