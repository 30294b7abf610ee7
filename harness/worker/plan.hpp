// The plan: forecasts of cells by their tasks and mechanisms, without running them.
#pragma once

#include <vector>

#include "attention/mechanism.hpp"
#include "core/cell.hpp"
#include "harness/worker/plugins.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {

/// A cell as its task, one of `tasks`, takes it: with the defaults of its settings. Throws
/// UsageError naming what is wrong.
tasks::ResolvedCell task_cell(const Cell& cell, const tasks::TaskTable& tasks);

/// The forecasts of `cells`, in order. They are made in a child: a mechanism that crashes, throws
/// or hangs over one costs that cell only, whose forecast then has a status and a reason.
std::vector<Forecast> plan(const Loaded& loaded, const std::vector<Cell>& cells,
                           double limit_seconds = 30);

}  // namespace attnbench::worker
