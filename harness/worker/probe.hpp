// The probe: the machine's ceilings, and the LibTorch that reaches them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/protocol.hpp"
#include "tasks/task.hpp"

namespace attnbench::worker {

using tasks::Json;

/// The ceilings of the device with GEMM rates per dtype, or one float32 product that was found
/// right; and the torch part of the machine card. Only for a forked child: it runs parallel
/// operations, and a process that ran one cannot fork children any more.
protocol::ProbeAnswer probe(const protocol::Probe& request);

/// The torch part of the machine card, {version, build, threads, blas: {kind, library, core_type?,
/// config?}, onednn, onednn_version, …}; runs nothing.
Json torch_card();

}  // namespace attnbench::worker
