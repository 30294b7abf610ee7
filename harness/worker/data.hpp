// Answers the protocol's `data`: what a task learns from, written as files by a child of the
// worker.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tasks/task.hpp"

namespace attnbench::worker {

using Json = nlohmann::json;

/// `request` as in core/protocol.hpp, of one of `tasks`. Returns {status: ok, files, …}. Throws
/// what the task throws.
Json write_data_in_child(const tasks::TaskTable& tasks, const Json& request);

}  // namespace attnbench::worker
