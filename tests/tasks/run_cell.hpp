// Runs one cell through its task as the worker's child does, with a sampling rule for tests.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/worker/allocator.hpp"
#include "harness/worker/context.hpp"
#include "tasks/task.hpp"
#include "tests/support/registry.hpp"

namespace attnbench::test {

using tasks::Json;

/// What is set beside what a task has by itself; numbers and texts of the types it holds.
using Settings = std::map<std::string, OptionValue>;
inline std::int64_t n(std::int64_t value) { return value; }
inline std::string s(const char* text) { return text; }

/// Two samples of each body: tests look at what is measured, not at how fast it was.
inline worker::RunSettings quick_settings(int round) {
  worker::RunSettings settings;
  settings.round = round;
  settings.seed = 1234;
  settings.rule.warmup_seconds = 0;
  settings.rule.min_seconds = 0;
  settings.rule.max_samples = 2;
  return settings;
}

struct Ran {
  tasks::Forecast forecast;
  Json check;
  Json sections;
  Json measured;
};

inline tasks::Cell make_cell(const std::string& task, const std::string& mechanism,
                             const std::string& implementation, const Settings& settings,
                             const Settings& options = {}) {
  tasks::Cell cell;
  cell.id = "test";
  cell.mechanism = mechanism;
  cell.implementation = implementation;
  cell.said = options;
  cell.settings = Options::resolve(tasks::find_task(task).settings(), settings);
  return cell;
}

inline Ran run_cell(const Registry& registry, const std::string& task, const tasks::Cell& cell,
                    int round = 0) {
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
