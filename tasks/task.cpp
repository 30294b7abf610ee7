#include "tasks/task.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace attnbench::tasks {

/// Generated from the folders of tasks/.
void append_tasks(std::vector<std::unique_ptr<Task>>& tasks);

namespace {

/// Lower-case letters, digits, _ and dots: lra.listops.
bool well_formed(const std::string& name) {
  if (name.empty() || name.front() < 'a' || name.front() > 'z' || name.back() == '.') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

void require_complete(const Task& task) {
  const std::string name = task.name();
  if (!well_formed(name)) {
    throw PluginError("the task \"" + name +
                      "\" must be lower-case letters, digits, _ and dots and begin with a letter");
  }
  if (task.figures().empty()) throw PluginError("the task " + name + " names no figure");
  try {
    for (const Option& setting : task.settings()) {
      Options::resolve({setting}, {{setting.name, setting.fallback}});
    }
  } catch (const UsageError& error) {
    throw PluginError("the task " + name + " has a default that cannot be used: " + error.what());
  }
}

}  // namespace

TaskTable TaskTable::with_builtins() {
  std::vector<std::unique_ptr<Task>> tasks;
  append_tasks(tasks);
  TaskTable table;
  for (std::unique_ptr<Task>& task : tasks) table.add(std::move(task));
  return table;
}

void TaskTable::add(std::shared_ptr<const Task> task) {
  require_complete(*task);
  const std::string name = task->name();
  const auto place = std::find_if(tasks_.begin(), tasks_.end(),
                                  [&](const auto& one) { return one->name() >= name; });
  if (place != tasks_.end() && (*place)->name() == name) {
    throw NameTaken("the name " + name + " of a task is taken");
  }
  tasks_.insert(place, std::move(task));
}

const Task& TaskTable::find(const std::string& name) const {
  std::vector<std::string> known;
  for (const auto& task : tasks_) {
    if (task->name() == name) return *task;
    known.push_back(task->name());
  }
  std::string message = "There is no task \"" + name + "\"";
  const std::string near = closest_word(name, known);
  if (!near.empty()) message += "; did you mean \"" + near + "\"?";
  message += " Tasks:";
  for (const std::string& word : known) message += " " + word;
  throw UsageError(message + ".");
}

const TaskTable& builtin_tasks() {
  static const TaskTable table = TaskTable::with_builtins();
  return table;
}

const Task& find_task(const std::string& name) { return builtin_tasks().find(name); }

}  // namespace attnbench::tasks
