// The decode task at work on one cell.
#pragma once

#include <memory>

#include "tasks/task.hpp"

namespace attnbench::tasks::decode {

/// `registry` must outlive the work; `forecast` is the task's own, of a supported cell.
std::unique_ptr<Work> make_work(const Registry& registry, const Cell& cell,
                                const Forecast& forecast);

}  // namespace attnbench::tasks::decode
