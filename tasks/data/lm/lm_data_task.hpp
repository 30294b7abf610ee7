// How the text of the task lm is prepared.
#pragma once

#include <vector>

#include "tasks/data/data_task.hpp"

namespace attnbench::tasks::data::lm {

std::vector<DataTask> all_data_tasks();

/// Throws UsageError where tokens are bytes and the setting vocabulary is not 256.
void expect_vocabulary(const Options& settings);

}  // namespace attnbench::tasks::data::lm
