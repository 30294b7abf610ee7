// The catalogue: everything that can be measured, as data for those who load no LibTorch.
#pragma once

#include "harness/worker/plugins.hpp"

namespace attnbench::worker {

/// {mechanisms, tasks, plugins, stamp}; see harness/suite/catalogue.hpp.
Json catalogue(const Loaded& loaded);
/// The same, asked of plugins in a child: one that crashes, throws or hangs over it ends no worker.
/// Throws Error saying so.
Json catalogue_in_child(const Loaded& loaded, double limit_seconds = 30);
/// What this build is: {attnbench, abi, torch, compiler}.
Json stamp();

}  // namespace attnbench::worker
