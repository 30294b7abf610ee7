#include "tasks/plugin.hpp"

#include <string>

namespace attnbench::tasks {
namespace {

using RegisterFunction = void (*)(TaskTaker&);

class IntoTable final : public TaskTaker {
 public:
  explicit IntoTable(TaskTable& table) : table_(table) {}
  void add(std::shared_ptr<const Task> task) override { table_.add(std::move(task)); }

 private:
  TaskTable& table_;
};

/// Two versions of the library may lay out the class of records differently.
void require_json(const PluginLibrary& plugin) {
  const auto* theirs = static_cast<const char*>(plugin.find("attnbench_plugin_json"));
  if (theirs == nullptr) plugin.refuse_without("attnbench_plugin_json");
  if (std::string(theirs) == json_version) return;
  throw PluginError("its tasks were built with nlohmann/json " + std::string(theirs) +
                    ", this attnbench with " + json_version +
                    ": rebuild the plugin with the latter");
}

}  // namespace

bool register_into(TaskTable& tasks, const PluginLibrary& plugin) {
  const auto add =
      reinterpret_cast<RegisterFunction>(plugin.find("attnbench_plugin_register_tasks"));
  if (add == nullptr) return false;
  TaskTable extended = tasks;
  plugin.guarded([&] {
    require_json(plugin);
    IntoTable taker(extended);
    add(taker);
  });
  tasks = std::move(extended);
  return true;
}

}  // namespace attnbench::tasks
