#include "harness/worker/plugins.hpp"

#include "attention/plugin.hpp"
#include "harness/worker/child.hpp"

namespace attnbench::worker {
namespace {

/// What loading `path` in a child came to.
Outcome try_plugin(const std::string& path, const Registry& registry, double limit_seconds) {
  ChildSetup setup;
  setup.limit_seconds = limit_seconds;
  return run_child(
      setup,
      [&](run::Channel&) {
        Registry copy = registry;
        load_plugin(path, copy);
      },
      [](const Json&) {});
}

Json verdict(const std::string& path, const char* status, const std::string& reason) {
  Json out = {{"path", path}, {"status", status}};
  if (!reason.empty()) out["reason"] = reason;
  return out;
}

void load(const std::string& path, Loaded& loaded, double limit_seconds) {
  const Outcome trial = try_plugin(path, loaded.registry, limit_seconds);
  if (trial.status == result::Status::crashed || trial.status == result::Status::timeout) {
    loaded.plugins.push_back(verdict(path, "crashed", "while it was loaded: " + trial.reason));
    return;
  }
  if (trial.status != result::Status::ok) {
    loaded.plugins.push_back(verdict(path, "refused", trial.reason));
    return;
  }
  try {
    load_plugin(path, loaded.registry);
  } catch (...) {
    loaded.plugins.push_back(verdict(path, "refused", outcome_of(std::current_exception()).reason));
    return;
  }
  loaded.plugins.push_back(verdict(path, "ok", ""));
}

}  // namespace

Loaded load_all(const std::vector<std::string>& paths, double limit_seconds) {
  Loaded loaded;
  loaded.registry = Registry::with_builtins();
  for (const std::string& path : paths) {
    const std::vector<std::string> before = loaded.registry.mechanisms();
    load(path, loaded, limit_seconds);
    for (const std::string& name : loaded.registry.mechanisms()) {
      if (!std::binary_search(before.begin(), before.end(), name)) loaded.origins[name] = path;
    }
  }
  return loaded;
}

}  // namespace attnbench::worker
