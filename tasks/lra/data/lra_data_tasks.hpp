// How the data of the five tasks of Long Range Arena are prepared.
#pragma once

#include <vector>

#include "tasks/prepared/data_task.hpp"

namespace attnbench::tasks::lra {

using namespace prepared;

/// lra.image, lra.listops, lra.pathfinder, lra.retrieval and lra.text, by name.
std::vector<DataTask> all_data_tasks();

}  // namespace attnbench::tasks::lra
