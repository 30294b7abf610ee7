// What trainings came to, as tables.
#pragma once

#include "reports/tables/grid.hpp"

namespace attnbench::result {

bool has_trainings(const Panel& panel);

/// Accuracy on the test at the learning rate that validation chose, that rate, how the wrong
/// answers are wrong, accuracy on examples trained on, state, speed; and what the test itself would
/// have chosen, where that is another rate.
std::vector<Grid> training_grids(const Panel& panel);

}  // namespace attnbench::result
