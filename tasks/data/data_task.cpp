#include "tasks/data/data_task.hpp"

#include <algorithm>

#include "core/option_json.hpp"
#include "tasks/data/lm/lm_data_task.hpp"
#include "tasks/data/lra/lra_data_tasks.hpp"

namespace attnbench::tasks::data {

const Option* DataTask::setting(const std::string& option) const {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const Option& one) { return one.name == option; });
  return found == settings.end() ? nullptr : &*found;
}

bool DataTask::is_default(const std::string& option, const Json& value) const {
  const Option* declared = setting(option);
  return declared != nullptr && to_json(declared->fallback) == value;
}

const std::vector<DataTask>& data_tasks() {
  static const std::vector<DataTask> all = [] {
    std::vector<DataTask> tasks = lm::all_data_tasks();
    for (DataTask& task : lra::all_data_tasks()) tasks.push_back(std::move(task));
    return tasks;
  }();
  return all;
}

std::string data_task_names() {
  std::vector<std::string> names;
  for (const DataTask& task : data_tasks()) names.push_back(task.name);
  return word_list(names);
}

const DataTask* find_data_task(const std::string& name) {
  for (const DataTask& task : data_tasks()) {
    if (task.name == name) return &task;
  }
  return nullptr;
}

SplitCounts counts_of(const Options& settings) {
  const auto count = [&](const char* name) {
    return settings.has(name) ? static_cast<std::uint32_t>(settings.integer(name)) : 0;
  };
  return {count("train_examples"), count("validation_examples"), count("test_examples")};
}

Wanted wanted_of(const DataTask& task, const Options& settings) {
  Wanted wanted;
  wanted.task = task.name;
  for (const std::string& name : task.decisive(settings)) {
    wanted.settings[name] = to_json(settings.values().at(name));
  }
  wanted.rows = counts_of(settings);
  return wanted;
}

void expect_from(const DataTask& task, const std::string& source,
                 const std::filesystem::path& from) {
  if (!from.empty()) return;
  throw UsageError(task.name + ": published data are read with --from, such as --from " +
                   task.wants_from(source) + ": " + task.how_to_get);
}

}  // namespace attnbench::tasks::data
