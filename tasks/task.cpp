#include "tasks/task.hpp"

#include <algorithm>

namespace attnbench::tasks {

/// Generated from the folders of tasks/.
void append_tasks(std::vector<std::unique_ptr<Task>>& tasks);

namespace {

std::vector<std::unique_ptr<Task>> sorted_tasks() {
  std::vector<std::unique_ptr<Task>> tasks;
  append_tasks(tasks);
  std::sort(tasks.begin(), tasks.end(),
            [](const auto& a, const auto& b) { return a->name() < b->name(); });
  return tasks;
}

}  // namespace

const std::vector<std::unique_ptr<Task>>& all_tasks() {
  static const std::vector<std::unique_ptr<Task>> tasks = sorted_tasks();
  return tasks;
}

const Task& find_task(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& task : all_tasks()) {
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

}  // namespace attnbench::tasks
