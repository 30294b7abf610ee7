// The mqar task at work on one cell.
#pragma once

#include <memory>

#include "tasks/learning/model_options.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks::mqar {

/// Of the cell's settings: also what the variant and the data ask of a model.
learning::ModelOptions model_options(const Options& settings);

/// `registry` must outlive the work; `forecast` is the task's own, of a supported cell.
std::unique_ptr<Work> make_work(const Registry& registry, const Cell& cell,
                                const Forecast& forecast);

}  // namespace attnbench::tasks::mqar
