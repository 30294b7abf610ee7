// Plugins as the worker takes them: each is tried in a child first, so that it costs only itself.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention/registry.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {

using Json = nlohmann::json;

/// Everything there is to measure, and where it came from.
struct Loaded {
  Registry registry = Registry::with_builtins();
  tasks::TaskTable tasks = tasks::builtin_tasks();
  /// The plugin's path by "MECHANISM", "MECHANISM/IMPLEMENTATION" and "task NAME"; what is built in
  /// is absent.
  std::map<std::string, std::string> origins;
  Json plugins = Json::array();  ///< [{path, status: ok | refused | crashed, reason}]

  /// The plugin's path, or "built in".
  std::string origin(const std::string& what) const;
};

/// The built-in mechanisms and tasks, and those of `paths`: shared objects, and TorchScript modules
/// (scripts.hpp), each as harness/run/worker/plugin_name.hpp reads it; under another name come mechanisms
/// and implementations alone. A plugin that crashes, throws, clashes or does not come back within
/// `limit_seconds` is left out and said to be so.
Loaded load_all(const std::vector<std::string>& paths, double limit_seconds = 30);

/// What to add to the reason why a cell (or check) failed that needs something of a plugin, such as
/// "; mine comes from the plugin build/libmine.so". Empty where all of it is built in.
std::string blame(const Loaded& loaded, const Json& cell);

}  // namespace attnbench::worker
