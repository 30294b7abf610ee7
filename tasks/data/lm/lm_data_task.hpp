// How the text of the task lm is prepared.
#pragma once

#include <vector>

#include "tasks/data/data_task.hpp"

namespace attnbench::tasks::data::lm {

std::vector<DataTask> all_data_tasks();

}  // namespace attnbench::tasks::data::lm
