// The probe: the machine's ceilings, and the LibTorch that reaches them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/protocol.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {

using tasks::Json;

/// Returns {ceilings, machine}: the ceilings of the device with GEMM rates per dtype, and the torch
/// part of the machine card. With `product`, in place of the ceilings, {product:
/// {flops_per_second}} of one float32 product that was found right. Only for a forked child: it
/// runs parallel operations, and a process that ran one cannot fork children any more.
Json probe(const protocol::Probe& request);

/// {version, build, threads, blas: {kind, library, core_type?, config?}, onednn, onednn_version,
/// …}: the torch part of the machine card; runs nothing.
Json torch_card();

}  // namespace attnbench::worker
