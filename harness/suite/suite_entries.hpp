// Members: the tasks and mechanism entries of a suite, their names looked up in the catalogue.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/suite/catalogue.hpp"
#include "harness/suite/problems.hpp"
#include "harness/suite/profile.hpp"
#include "harness/suite/set_flag.hpp"

namespace attnbench::suite {

/// One task of a suite. Points into the suite and the catalogue.
struct Group {
  std::string label;
  const TaskSpec* task = nullptr;
  std::string pointer;          ///< "/tasks/LABEL", or empty for a suite's only task
  nlohmann::ordered_json said;  ///< the task's own object, {} for a suite's only task
};

/// One mechanism entry of a suite. Points into the catalogue.
struct Entry {
  std::string label;
  const MechanismSpec* mechanism = nullptr;
  const AliasSpec* alias = nullptr;  ///< where `use` names one
  std::string implementation;   ///< of the alias, or after the "/" of "latte/scan"; else "auto"
  std::string pointer;          ///< "/mechanisms/LABEL"
  nlohmann::ordered_json said;  ///< what the entry overrides
};

/// The suite's tasks in order; `flags` may name others with --set task=….
std::vector<Group> read_groups(const ProfiledSuite& suite, const Catalogue& catalogue,
                               const std::vector<SetFlag>& flags, Problems& problems);

std::vector<Entry> read_entries(const ProfiledSuite& suite, const Catalogue& catalogue,
                                Problems& problems);

/// Whether the task is for that entry: a task may name the labels it is for.
bool is_for(const Group& group, const Entry& entry);

}  // namespace attnbench::suite
