// The plan: what tasks and mechanisms foretell of each cell, without running it.
#pragma once

#include "harness/worker/plugins.hpp"

namespace attnbench::worker {

/// {type: plan, cells: […]} as protocol.hpp has it. The forecasts are made in a child: a mechanism
/// that crashes over one costs that cell only, which then carries "status" and "reason".
Json plan(const Loaded& loaded, const Json& cells, double limit_seconds = 30);

}  // namespace attnbench::worker
