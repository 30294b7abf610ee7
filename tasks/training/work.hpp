// A task that trains, at work on one cell.
#pragma once

#include <memory>

#include "tasks/training/task.hpp"

namespace attnbench::tasks::learning {

/// `task` and `registry` must outlive the work; `forecast` is the task's own, of a supported cell.
std::unique_ptr<Work> make_work(const TrainingTask& task, const Registry& registry,
                                const Cell& cell, const Forecast& forecast);

}  // namespace attnbench::tasks::learning
