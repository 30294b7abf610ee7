// What a child does for one round of one cell.
#pragma once

#include "attention/registry.hpp"
#include "harness/run/channel.hpp"

namespace attnbench::worker {

using run::Json;

/// Prepares, checks (in round 0) and measures the cell of a run request; a cell that is wrong is
/// not timed. Returns {status, reason, measured}; progress goes through `channel`. Throws what the
/// mechanism, the task or the allocator throw.
Json do_cell(const Registry& registry, const Json& request, run::Channel& channel);

}  // namespace attnbench::worker
