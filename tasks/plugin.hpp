// Tasks of plugins. A plugin that has some exports, beside its stamp (attention/plugin/plugin.hpp),
//   extern "C" const char attnbench_plugin_json[];   the JSON library that its Work uses
//   extern "C" void attnbench_plugin_register_tasks(attnbench::tasks::TaskTaker&);
// ATTNBENCH_TASKS(register_function) writes both. `name`, `settings` and the other descriptions of
// a task must not change once it is registered.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "attention/plugin/plugin.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks {

/// Receives the tasks of a plugin.
class TaskTaker {
 public:
  virtual ~TaskTaker() = default;
  /// Throws PluginError as TaskTable::add does.
  virtual void add(std::shared_ptr<const Task> task) = 0;
};

/// Adds the plugin's tasks to `tasks`; leaves it unchanged on failure. False where the plugin has
/// none. Throws PluginError.
bool register_into(TaskTable& tasks, const PluginLibrary& plugin);

#define ATTNBENCH_TEXT_OF(x) #x
#define ATTNBENCH_VERSION_TEXT_OF(a, b, c) \
  ATTNBENCH_TEXT_OF(a) "." ATTNBENCH_TEXT_OF(b) "." ATTNBENCH_TEXT_OF(c)
/// The version of the JSON library that is compiled in.
constexpr char json_version[] = ATTNBENCH_VERSION_TEXT_OF(
    NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH);

}  // namespace attnbench::tasks

/// Exports a plugin's tasks; `register_function` takes an attnbench::tasks::TaskTaker&. Used beside
/// ATTNBENCH_PLUGIN or, without mechanisms, ATTNBENCH_PLUGIN_STAMP.
#define ATTNBENCH_TASKS(register_function)                                                    \
  extern "C" {                                                                                \
  extern const char attnbench_plugin_json[] __attribute__((visibility("default")));           \
  const char attnbench_plugin_json[] = ATTNBENCH_VERSION_TEXT_OF(                             \
      NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH); \
  __attribute__((visibility("default"))) void attnbench_plugin_register_tasks(                \
      attnbench::tasks::TaskTaker& taker) {                                                   \
    register_function(taker);                                                                 \
  }                                                                                           \
  }
