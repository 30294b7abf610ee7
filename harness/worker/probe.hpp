// The probe: what the machine can do, and which LibTorch does it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tasks/task.hpp"

namespace attnbench::worker {

using tasks::Json;

/// Answers a probe request {device, threads?, product?} with {ceilings, machine}: the ceilings of
/// the device with GEMM rates per dtype, and the torch part of the machine card. With `product`, in
/// place of the ceilings, with the rate of one float32 product that was found right. Runs parallel
/// operations, so it belongs in a forked child: a process that ran one cannot fork workers any
/// more.
Json probe_in_child(const Json& request);

/// {version, build, threads, blas: {kind, library, core_type?, config?}, onednn, onednn_version,
/// …}: the torch part of the machine card; runs nothing.
Json torch_card();

}  // namespace attnbench::worker
