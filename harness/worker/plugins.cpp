#include "harness/worker/plugins.hpp"

#include <algorithm>
#include <set>

#include "attention/python/python.hpp"
#include "core/process/python_word.hpp"
#include "core/protocol.hpp"
#include "harness/worker/catalogue.hpp"
#include "harness/worker/child.hpp"
#include "tasks/plugin.hpp"

namespace attnbench::worker {
namespace {

void register_all(const std::string& path, Registry& registry, tasks::TaskTable& tasks) {
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

/// Adds all that the plugin registers, or nothing.
void add_plugin(const PluginName& plugin, Loaded& loaded) {
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

/// How adding the plugin in a child ended.
struct Trial {
  Outcome outcome;
  bool clash = false;  ///< a name of it is taken
};

Trial try_plugin(const PluginName& plugin, const Loaded& loaded, double limit_seconds) {
  ChildSetup setup;
  setup.limit_seconds = limit_seconds;
  Trial trial;
  trial.outcome = run_child(
      setup,
      [&](process::Channel& channel) {
        Loaded copy = loaded;
        try {
          add_plugin(plugin, copy);
        } catch (const NameTaken&) {
          channel.send({{"type", "clash"}});
          throw;
        }
        catalogue(copy);  // calls all that it declares
      },
      [&](const Json& message) { trial.clash = protocol::type_of(message) == "clash"; });
  return trial;
}

PluginSpec load(const std::string& path, Loaded& loaded, double limit_seconds) {
  const PluginName plugin(path);
  const auto [trial, clash] = try_plugin(plugin, loaded, limit_seconds);
  if (trial.status == Status::crashed || trial.status == Status::timeout) {
    return {path, "crashed", "while it was loaded: " + trial.reason};
  }
  if (trial.status != Status::ok) {
    return {path, clash ? "clash" : "refused", trial.reason};
  }
  try {
    add_plugin(plugin, loaded);
  } catch (...) {
    return {path, "refused", outcome_of(std::current_exception()).reason};
  }
  return {path, "ok", ""};
}

/// Adds a mechanism in Python. One that cannot be used is added as such: it costs its cells alone.
PluginSpec load_python(PythonPlugin plugin, Loaded& loaded) {
  const bool usable = plugin.outcome.status == Status::ok;
  try {
    if (usable) {
      python::add_python(plugin.word, plugin.mechanism, plugin.description, loaded.registry);
    }
  } catch (const UsageError& error) {
    plugin.outcome = {Status::error, plugin.description.place + ": its reference: " + error.what(),
                      ""};
  } catch (const std::exception& error) {
    return {plugin.word, "refused", error.what()};
  }
  const Outcome& outcome = plugin.outcome;
  if (outcome.status == Status::ok) {
    loaded.python[plugin.mechanism] = plugin;
    return {plugin.word, "ok", ""};
  }
  const bool unsupported = outcome.status == Status::unsupported;
  try {
    python::add_unusable(plugin.mechanism, unsupported, outcome.reason, loaded.registry);
  } catch (const std::exception& error) {
    return {plugin.word, "refused", error.what()};
  }
  loaded.python[plugin.mechanism] = plugin;
  return {plugin.word, unsupported ? "unavailable" : "failed", outcome.reason};
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

std::string Loaded::python_home(const std::string& mechanism) const {
  const auto found = python.find(mechanism);
  return found == python.end() ? "" : process::home_of(found->second.word);
}

Loaded load_all(const std::vector<std::string>& paths, std::vector<PythonPlugin> in_python,
                double limit_seconds, const std::function<void(const std::string& path)>& on_step) {
  Loaded loaded;
  auto next = in_python.begin();
  for (const std::string& path : paths) {
    const std::set<std::string> before = names_of(loaded);
    if (on_step) on_step(path);
    const bool is_script = process::is_python(path);
    loaded.plugins.push_back(is_script ? load_python(std::move(*next++), loaded)
                                       : load(path, loaded, limit_seconds));
    for (const std::string& name : names_of(loaded)) {
      if (before.count(name) != 0) continue;
      loaded.origins[name] = is_script ? PluginName(path).path : path;
    }
  }
  return loaded;
}

std::string blame(const Loaded& loaded, const std::string& mechanism,
                  const std::string& implementation, const std::string& task) {
  for (const std::string& name : {mechanism, mechanism + "/" + implementation, "task " + task}) {
    const auto found = loaded.origins.find(name);
    if (found != loaded.origins.end()) {
      return "; " + name + " comes from the plugin " + found->second;
    }
  }
  return {};
}

std::string at_place(const Loaded& loaded, const std::string& mechanism, std::string reason) {
  const auto found = loaded.python.find(mechanism);
  if (found == loaded.python.end()) return reason;
  const std::string& place = found->second.description.place;
  const std::string file = place.substr(0, place.rfind(':') + 1);
  const bool has_line = !file.empty() && reason.rfind(file, 0) == 0;
  return place.empty() || has_line ? reason : place + ": " + reason;
}

}  // namespace attnbench::worker
