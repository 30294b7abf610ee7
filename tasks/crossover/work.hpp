// The crossover task at work on one cell.
#pragma once

#include <memory>

#include "tasks/task.hpp"

namespace attnbench::tasks::crossover {

/// `registry` must outlive the work. Throws UsageError where the settings make no sense.
std::unique_ptr<Work> make_work(const Registry& registry, const Cell& cell);

}  // namespace attnbench::tasks::crossover
