// The catalogue: everything that can be measured, as data for those who load no LibTorch.
#pragma once

#include "harness/worker/plugins.hpp"

namespace attnbench::worker {

/// {mechanisms, tasks, plugins, stamp}; see harness/suite/catalogue.hpp.
Json catalogue(const Loaded& loaded);
/// What this build is: {attnbench, abi, torch, compiler}.
Json stamp();

}  // namespace attnbench::worker
