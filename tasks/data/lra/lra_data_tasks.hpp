// How the data of the five tasks of Long Range Arena are prepared.
#pragma once

#include <vector>

#include "tasks/data/data_task.hpp"

namespace attnbench::tasks::data::lra {

std::vector<DataTask> all_data_tasks();

}  // namespace attnbench::tasks::data::lra
