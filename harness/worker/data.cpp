#include "harness/worker/data.hpp"

#include <nlohmann/json.hpp>

#include "harness/worker/cell.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {

Json write_data_in_child(const tasks::TaskTable& tasks, const Json& request) {
  const tasks::Task& task = tasks.find(request.at("task"));
  std::map<std::string, OptionValue> said;
  for (const auto& [name, value] : request.at("settings").items()) {
    said[name] = value_from(value, name);
  }
  const Options settings = Options::resolve(task.data_settings(), said);
  Json written = task.write_data(settings, request.value("seed", std::uint64_t{0}),
                                 request.at("out").get<std::string>());
  written["status"] = "ok";
  return written;
}

}  // namespace attnbench::worker
