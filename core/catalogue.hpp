// Catalogue: mechanisms, tasks, their options and settings, as the worker lists them and `attnbench
// list` and `describe` show them. Each struct's JSON has the members' names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/claims_json.hpp"
#include "core/json_object.hpp"

namespace attnbench {

struct ImplementationSpec {
  std::string name;
  std::string title;
  Growth growth;  ///< claimed
  bool differentiable = true;
};

/// An input of a mechanism. `shape` is such as "[B, H, T, D]": B batch, H heads, G key heads (a
/// divisor of H), T query tokens, S key tokens, D head_dim, Dv value_dim, L latents_per_head;
/// `fed_by` says what a layer fills it with.
struct RoleSpec {
  std::string name;
  std::string shape;
  std::string fed_by;
  std::vector<std::string> patterns;
};

struct MechanismSpec {
  std::string name;
  std::string title;
  std::string citation;
  std::string formula;  ///< a line an equation; empty where none is said
  std::string origin;   ///< "built in", or the plugin's path
  std::vector<std::string> patterns;
  std::vector<Option> options;
  bool options_unknown = false;  ///< it cannot be used, and what it takes is not known
  Claims claims;
  std::vector<ImplementationSpec> implementations;
  std::vector<Alias> aliases;
  std::vector<Departure> differs_from;
  std::vector<RoleSpec> roles;  ///< with default options
  std::string roles_unknown;    ///< why there are no roles

  std::vector<std::string> implementation_names() const;
};

struct TaskSpec {
  std::string name;
  std::string title;
  std::string origin;
  std::string axis;
  std::vector<std::string> figures;          ///< drawn unless a suite says otherwise
  std::vector<std::string> further_figures;  ///< a suite may name these as well
  std::vector<Option> settings;
  std::vector<Option> data_settings;  ///< settings of its data; empty for a task without data
  std::vector<Departure> differs_from;
};

struct PluginSpec {
  std::string path;
  /// ok, refused, crashed or clash (a name is taken); of one in Python also unavailable or failed:
  /// then its mechanism is there, and its cells say why they have no result.
  std::string status;
  std::string reason;  ///< empty where it is ok
};

/// The build of a worker.
struct Stamp {
  std::string attnbench;
  int abi = 0;
  std::string torch;
  std::string compiler;
};

/// What a name stands for. Points into the catalogue.
struct NamedMechanism {
  const MechanismSpec* mechanism = nullptr;
  const Alias* alias = nullptr;  ///< where the name is an alias

  std::string implementation() const { return alias != nullptr ? alias->implementation : "auto"; }
};

struct Catalogue {
  std::vector<MechanismSpec> mechanisms;
  std::vector<TaskSpec> tasks;
  std::vector<PluginSpec> plugins;
  Stamp stamp;

  /// By a mechanism's own name or an alias.
  std::optional<NamedMechanism> find(const std::string& name) const;
  /// Null where there is none.
  const TaskSpec* task(const std::string& name) const;
  /// Mechanisms, then aliases.
  std::vector<std::string> names() const;
  std::vector<std::string> task_names() const;
};

ATTNBENCH_JSON(ImplementationSpec);
ATTNBENCH_JSON(RoleSpec);
ATTNBENCH_JSON(MechanismSpec);
ATTNBENCH_JSON(TaskSpec);
ATTNBENCH_JSON(PluginSpec);
ATTNBENCH_JSON(Stamp);
ATTNBENCH_JSON(Catalogue);

}  // namespace attnbench
