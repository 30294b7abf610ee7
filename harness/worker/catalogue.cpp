#include "harness/worker/catalogue.hpp"

#include "attention/version.hpp"
#include "harness/worker/cell.hpp"
#include "harness/worker/child.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {
namespace {

Json options_json(const std::vector<Option>& options) {
  Json out = Json::array();
  for (const Option& option : options) out.push_back(to_json(option));
  return out;
}

Json alias_json(const Alias& alias) {
  Json options = Json::object();
  for (const auto& [name, value] : alias.options) options[name] = to_json(value);
  return {{"name", alias.name},
          {"implementation", alias.implementation},
          {"options", std::move(options)},
          {"title", alias.title}};
}

Json departures_json(const std::vector<Departure>& departures) {
  Json out = Json::array();
  for (const Departure& one : departures) out.push_back({{"what", one.what}, {"how", one.how}});
  return out;
}

Json entry_json(const Entry& entry, const std::string& origin) {
  Json patterns = Json::array();
  for (const Pattern pattern : entry.patterns) patterns.push_back(to_string(pattern));
  Json implementations = Json::array();
  for (const Implementation& implementation : entry.implementations) {
    implementations.push_back({{"name", implementation.name},
                               {"title", implementation.title},
                               {"growth", to_json(implementation.growth)},
                               {"differentiable", implementation.differentiable}});
  }
  Json aliases = Json::array();
  for (const Alias& alias : entry.aliases) aliases.push_back(alias_json(alias));
  return {{"name", entry.name},
          {"title", entry.title},
          {"citation", entry.citation},
          {"origin", origin},
          {"patterns", std::move(patterns)},
          {"options", options_json(entry.options)},
          {"claims",
           {{"rows_sum_to_one", entry.claims.rows_sum_to_one},
            {"linear_in_value", entry.claims.linear_in_value},
            {"permutation_equivariant", entry.claims.permutation_equivariant},
            {"last_row_agrees", entry.claims.last_row_agrees},
            {"heads_independent", entry.claims.heads_independent}}},
          {"implementations", std::move(implementations)},
          {"aliases", std::move(aliases)},
          {"differs_from", departures_json(entry.differs_from)}};
}

}  // namespace

Json stamp() {
  return {{"attnbench", ATTNBENCH_VERSION},
          {"abi", ATTNBENCH_ABI},
          {"torch", ATTNBENCH_TORCH_BUILD},
          {"compiler", ATTNBENCH_COMPILER_ABI}};
}

Json catalogue(const Loaded& loaded) {
  Json mechanisms = Json::array();
  for (const std::string& name : loaded.registry.mechanisms()) {
    mechanisms.push_back(entry_json(loaded.registry.entry(name), loaded.origin(name)));
  }
  Json all_tasks = Json::array();
  for (const auto& task : loaded.tasks.all()) {
    const tasks::TaskData* const data = task->data();
    const std::vector<Option> of_data = data != nullptr ? data->settings() : std::vector<Option>{};
    all_tasks.push_back({{"name", task->name()},
                         {"title", task->title()},
                         {"origin", loaded.origin("task " + task->name())},
                         {"axis", task->axis()},
                         {"figures", task->figures()},
                         {"further_figures", task->further_figures()},
                         {"settings", options_json(task->settings())},
                         {"data_settings", options_json(of_data)},
                         {"differs_from", departures_json(task->differs_from())}});
  }
  return {{"type", "catalogue"},
          {"mechanisms", std::move(mechanisms)},
          {"tasks", std::move(all_tasks)},
          {"plugins", loaded.plugins},
          {"stamp", stamp()}};
}

Json catalogue_in_child(const Loaded& loaded, double limit_seconds) {
  ChildSetup setup;
  setup.limit_seconds = limit_seconds;
  Json told;
  const Outcome end = run_child(
      setup, [&](run::Channel& channel) { channel.send(catalogue(loaded)); },
      [&](const Json& message) { told = message; });
  if (end.status != result::Status::ok || told.is_null()) {
    throw Error("what plugins say of themselves cannot be had: " + end.reason);
  }
  return told;
}

}  // namespace attnbench::worker
