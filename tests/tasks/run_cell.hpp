// Runs one cell through its task as the worker's child does, with a sampling rule for tests.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/worker/allocator.hpp"
#include "harness/worker/context.hpp"
#include "tasks/task.hpp"
#include "tests/support/registry.hpp"

namespace attnbench::test {

using tasks::Json;

/// Settings that differ from the task's defaults, of the declared types.
using Settings = std::map<std::string, OptionValue>;
inline std::int64_t n(std::int64_t value) { return value; }
inline std::string s(const char* text) { return text; }

/// `settings` with those of `more` added or replaced.
inline Settings with(Settings settings, const Settings& more) {
  for (const auto& [name, value] : more) settings[name] = value;
  return settings;
}

using Mix = decltype(Implementation::mix);

/// The built-in registry with another mechanism, `name`: softmax with its composite form alone,
/// whose mix is replaced by `change(mix, …)`.
inline Registry with_changed_softmax(
    const std::string& name,
    const std::function<Mixed(const Mix&, Mechanism&, const Inputs&, State*)>& change) {
  Registry registry = Registry::with_builtins();
  Entry entry = registry.entry("softmax");
  entry.name = name;
  entry.aliases.clear();
  entry.implementations.resize(1);
  const Mix mix = entry.implementations.front().mix;
  entry.implementations.front().mix = [=](Mechanism& mechanism, const Inputs& inputs,
                                          State* state) {
    return change(mix, mechanism, inputs, state);
  };
  registry.add(entry, registry.reference("softmax"));
  return registry;
}

/// Two samples of each body, since tests do not look at times.
inline worker::WorkSettings quick_settings(int round) {
  worker::WorkSettings settings;
  settings.round = round;
  settings.seed = 1234;
  settings.rule.warmup_seconds = 0;
  settings.rule.min_seconds = 0;
  settings.rule.max_samples = 2;
  return settings;
}

struct Ran {
  tasks::TaskForecast forecast;
  Json check;
  Json sections;
  Json measured;
};

inline tasks::ResolvedCell make_cell(const std::string& task, const std::string& mechanism,
                                     const std::string& implementation, const Settings& settings,
                                     const Settings& options = {}) {
  tasks::ResolvedCell cell;
  cell.id = "test";
  cell.mechanism = mechanism;
  cell.implementation = implementation;
  cell.said = options;
  cell.settings = Options::resolve(tasks::find_task(task).settings(), settings);
  return cell;
}

inline Ran run_cell(const Registry& registry, const std::string& task,
                    const tasks::ResolvedCell& cell, int round = 0) {
  worker::install_counting_allocator();
  const tasks::Task& found = tasks::find_task(task);
  Ran ran;
  ran.forecast = found.forecast(registry, cell);
  worker::ChildContext context(quick_settings(round), registry, {});
  const auto work = found.make(registry, cell);
  work->prepare(context);
  if (round == 0) ran.check = work->check(context);
  ran.sections = work->run(context);
  ran.measured = context.measured();
  return ran;
}

}  // namespace attnbench::test
