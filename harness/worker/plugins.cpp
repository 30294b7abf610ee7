#include "harness/worker/plugins.hpp"

#include <algorithm>
#include <set>

#include "harness/run/worker/plugin_name.hpp"
#include "harness/worker/catalogue.hpp"
#include "harness/worker/child.hpp"
#include "harness/worker/scripts.hpp"
#include "tasks/plugin.hpp"

namespace attnbench::worker {
namespace {

void register_all(const std::string& path, Registry& registry, tasks::TaskTable& tasks) {
  if (is_script(path)) return add_script(describe_script(path), registry);
  const PluginLibrary plugin(path);
  const bool mechanisms = plugin.register_into(registry);
  const bool further_tasks = tasks::register_into(tasks, plugin);
  if (!mechanisms && !further_tasks) plugin.refuse_without("attnbench_plugin_register");
}

/// Adds to `registry` what `with_plugin` has beyond the built-ins, under names that end in _`word`.
/// Aliases are left out: they are names, too. Throws PluginError where there is nothing.
void add_as(const std::string& word, const Registry& with_plugin, Registry& registry) {
  const Registry builtin = Registry::with_builtins();
  const std::vector<std::string> known = builtin.mechanisms();
  bool any = false;
  for (const std::string& name : with_plugin.mechanisms()) {
    const Entry& entry = with_plugin.entry(name);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      Entry renamed = entry;
      renamed.name += "_" + word;
      renamed.aliases.clear();
      registry.add(std::move(renamed), with_plugin.reference(name));
      any = true;
      continue;
    }
    for (const Implementation& one : entry.implementations) {
      if (builtin.entry(name).find_implementation(one.name) != nullptr) continue;
      Implementation renamed = one;
      renamed.name += "_" + word;
      registry.add_implementation(name, std::move(renamed));
      any = true;
    }
  }
  if (!any) throw PluginError("it has no mechanism to be called by another name");
}

/// Takes over all that the plugin registers, or nothing.
void take(const run::PluginName& plugin, Loaded& loaded) {
  Registry registry = loaded.registry;
  tasks::TaskTable tasks = loaded.tasks;
  if (plugin.as.empty()) {
    register_all(plugin.path, registry, tasks);
  } else {
    Registry fresh = Registry::with_builtins();
    tasks::TaskTable ignored = tasks::builtin_tasks();
    register_all(plugin.path, fresh, ignored);
    add_as(plugin.as, fresh, registry);
  }
  loaded.registry = std::move(registry);
  loaded.tasks = std::move(tasks);
}

/// What taking the plugin in a child came to.
Outcome try_plugin(const run::PluginName& plugin, const Loaded& loaded, double limit_seconds) {
  ChildSetup setup;
  setup.limit_seconds = limit_seconds;
  return run_child(
      setup,
      [&](run::Channel&) {
        Loaded copy = loaded;
        take(plugin, copy);
        catalogue(copy);  // asks it all that it declares
      },
      [](const Json&) {});
}

Json verdict(const std::string& path, const char* status, const std::string& reason) {
  Json out = {{"path", path}, {"status", status}};
  if (!reason.empty()) out["reason"] = reason;
  return out;
}

Json load(const std::string& path, Loaded& loaded, double limit_seconds) {
  const run::PluginName plugin(path);
  const Outcome trial = try_plugin(plugin, loaded, limit_seconds);
  if (trial.status == result::Status::crashed || trial.status == result::Status::timeout) {
    return verdict(path, "crashed", "while it was loaded: " + trial.reason);
  }
  if (trial.status != result::Status::ok) return verdict(path, "refused", trial.reason);
  try {
    take(plugin, loaded);
  } catch (...) {
    return verdict(path, "refused", outcome_of(std::current_exception()).reason);
  }
  return verdict(path, "ok", "");
}

/// The names under which `origins` has things.
std::set<std::string> names_of(const Loaded& loaded) {
  std::set<std::string> names;
  for (const std::string& mechanism : loaded.registry.mechanisms()) {
    names.insert(mechanism);
    for (const Implementation& one : loaded.registry.entry(mechanism).implementations) {
      names.insert(mechanism + "/" + one.name);
    }
  }
  for (const auto& task : loaded.tasks.all()) names.insert("task " + task->name());
  return names;
}

}  // namespace

std::string Loaded::origin(const std::string& what) const {
  const auto found = origins.find(what);
  return found == origins.end() ? "built in" : found->second;
}

Loaded load_all(const std::vector<std::string>& paths, double limit_seconds) {
  Loaded loaded;
  for (const std::string& path : paths) {
    const std::set<std::string> before = names_of(loaded);
    loaded.plugins.push_back(load(path, loaded, limit_seconds));
    for (const std::string& name : names_of(loaded)) {
      if (before.count(name) == 0) loaded.origins[name] = path;
    }
  }
  return loaded;
}

std::string blame(const Loaded& loaded, const Json& cell) {
  const std::string mechanism = cell.value("mechanism", "");
  const std::string one = mechanism + "/" + cell.value("implementation", "auto");
  for (const std::string& name : {mechanism, one, "task " + cell.value("task", "")}) {
    const auto found = loaded.origins.find(name);
    if (found != loaded.origins.end()) {
      return "; " + name + " comes from the plugin " + found->second;
    }
  }
  return {};
}

}  // namespace attnbench::worker
