// Plugins: each is loaded in a child first, so that one that crashes costs only itself.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention/registry.hpp"
#include "core/catalogue.hpp"
#include "harness/worker/python_plugins.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {

using Json = nlohmann::json;

/// Everything that can be measured, and where it came from.
struct Loaded {
  Registry registry = Registry::with_builtins();
  tasks::TaskTable tasks = tasks::builtin_tasks();
  /// The plugin's path by "MECHANISM", "MECHANISM/IMPLEMENTATION" and "task NAME"; what is built in
  /// is absent.
  std::map<std::string, std::string> origins;
  std::vector<PluginSpec> plugins;
  /// The mechanisms in Python by name. One that cannot be used is registered, too, and makes
  /// nothing.
  std::map<std::string, PythonPlugin> python;

  /// What Python loads for a mechanism; empty for one that is not in Python. No process has two of
  /// them: modules that they import may have one name.
  std::string python_home(const std::string& mechanism) const;

  /// The plugin's path, or "built in".
  std::string origin(const std::string& what) const;
};

/// The built-in mechanisms and tasks, and those of `paths`: shared objects, each as run::PluginName
/// reads it, and words that name a mechanism in Python; under another name come mechanisms and
/// implementations alone. A plugin that crashes, throws, clashes or does not come back within
/// `limit_seconds` is left out and said to be so. `on_step` is told which of them is next: one may
/// misbehave only where it stays.
///
/// `in_python` are those of `paths` that are in Python, in order, as python_plugins returns them.
Loaded load_all(const std::vector<std::string>& paths, std::vector<PythonPlugin> in_python = {},
                double limit_seconds = 25,
                const std::function<void(const std::string& path)>& on_step = {});

/// An addition to the reason why a cell or a check failed that needs something of a plugin, such as
/// "; mine comes from the plugin build/libmine.so". Empty where all of it is built in, or has no
/// name.
std::string blame(const Loaded& loaded, const std::string& mechanism,
                  const std::string& implementation, const std::string& task);

/// The reason with FILE:LINE of the mechanism's definition before it, where that is in Python and
/// the reason does not begin with a line of that file.
std::string at_place(const Loaded& loaded, const std::string& mechanism, std::string reason);

}  // namespace attnbench::worker
