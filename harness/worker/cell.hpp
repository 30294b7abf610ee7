// Cells and option values between JSON and the types that tasks and mechanisms know.
#pragma once

#include <nlohmann/json.hpp>

#include "core/option_json.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {

using tasks::Json;

using attnbench::to_json;
using attnbench::value_from;

Json to_json(const Options& options);
Json to_json(const Problem& problem);
/// Numbers that are not finite are left out: JSON has none.
Json to_json(const Cost& cost);
Json to_json(const Growth& growth);

/// A cell as the suite's expansion made it; the defaults of its task, one of `tasks`, are filled
/// in. Throws UsageError naming what is missing or wrong.
tasks::Cell cell_from(const Json& cell, const tasks::TaskTable& tasks);

}  // namespace attnbench::worker
