// What a child does for one round of one cell.
#pragma once

#include "harness/run/worker/channel.hpp"
#include "harness/worker/plugins.hpp"

namespace attnbench::worker {

/// Prepares, checks (in round 0) and measures the cell of a run request; a cell that is wrong is
/// not timed. Returns {status, reason, measured}; progress goes through `channel`. Throws what the
/// mechanism, the task or the allocator throw.
Json do_cell(const Loaded& loaded, const Json& request, run::Channel& channel);

}  // namespace attnbench::worker
