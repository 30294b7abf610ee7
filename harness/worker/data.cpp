#include "harness/worker/data.hpp"

#include <nlohmann/json.hpp>

#include "harness/worker/cell.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {

Json write_data_in_child(const tasks::TaskTable& tasks, const Json& request) {
  const tasks::Task& task = tasks.find(request.at("task"));
  const tasks::TaskData* const data = task.data();
  if (data == nullptr) {
    throw UsageError("the task " + task.name() + " learns from nothing: it has no data to write");
  }
  std::map<std::string, OptionValue> said;
  for (const auto& [name, value] : request.at("settings").items()) {
    said[name] = value_from(value, name);
  }
  const Options settings = Options::resolve(data->settings(), said);
  Json written = data->write(settings, request.value("seed", std::uint64_t{0}),
                             request.at("out").get<std::string>());
  written["status"] = "ok";
  return written;
}

}  // namespace attnbench::worker
