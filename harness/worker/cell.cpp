#include "harness/worker/cell.hpp"

#include <cmath>
#include <initializer_list>
#include <utility>

#include "attention/torch/cuda.hpp"
#include "core/errors.hpp"

namespace attnbench::worker {
namespace {

std::map<std::string, OptionValue> values_from(const Json& cell, const char* section) {
  std::map<std::string, OptionValue> values;
  if (!cell.contains(section)) return values;
  for (const auto& [name, value] : cell.at(section).items()) {
    values[name] = value_from(value, std::string(section) + "." + name);
  }
  return values;
}

Json finite_numbers(std::initializer_list<std::pair<const char*, double>> numbers) {
  Json out = Json::object();
  for (const auto& [name, number] : numbers) {
    if (std::isfinite(number)) out[name] = number;
  }
  return out;
}

}  // namespace

Json to_json(const Options& options) {
  Json out = Json::object();
  for (const auto& [name, value] : options.values()) out[name] = to_json(value);
  return out;
}

Json to_json(const Problem& problem) {
  return {{"batch", problem.batch},           {"heads", problem.heads},
          {"kv_heads", problem.kv_heads},     {"length", problem.length},
          {"key_length", problem.key_length}, {"head_dim", problem.head_dim},
          {"value_dim", problem.value_dim},   {"pattern", to_string(problem.pattern)},
          {"dtype", to_string(problem.dtype)}};
}

Json to_json(const Cost& cost) {
  return finite_numbers({{"model_flops", cost.model_flops},
                         {"executed_flops", cost.executed_flops},
                         {"minimal_bytes", cost.minimal_bytes},
                         {"exponentials", cost.exponentials},
                         {"workspace_bytes", cost.workspace_bytes},
                         {"saved_bytes", cost.saved_bytes},
                         {"state_bytes", cost.state_bytes}});
}

Json to_json(const Growth& growth) {
  Json exponents = finite_numbers({{"time_in_length", growth.time_in_length},
                                   {"workspace_in_length", growth.workspace_in_length},
                                   {"time_in_latents", growth.time_in_latents},
                                   {"workspace_in_latents", growth.workspace_in_latents},
                                   {"time_in_head_dim", growth.time_in_head_dim}});
  if (growth.from_length > 0) exponents["from_length"] = growth.from_length;
  if (growth.workspace_in_head_dim) {
    exponents["workspace_in_head_dim"] = *growth.workspace_in_head_dim;
  }
  return exponents;
}

tasks::Cell cell_from(const Json& cell, const tasks::TaskTable& tasks) {
  for (const char* key : {"id", "task", "mechanism"}) {
    if (!cell.is_object() || !cell.contains(key) || !cell.at(key).is_string()) {
      throw UsageError(std::string("a cell needs \"") + key + "\"");
    }
  }
  tasks::Cell out;
  out.id = cell.at("id");
  out.mechanism = cell.at("mechanism");
  out.implementation = cell.value("implementation", "auto");
  out.device = torch_device(cell.value("device", "cpu"));
  out.said = values_from(cell, "options");
  const tasks::Task& task = tasks.find(cell.at("task"));
  out.settings = Options::resolve(task.settings(), values_from(cell, "settings"));
  return out;
}

}  // namespace attnbench::worker
