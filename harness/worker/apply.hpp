// Answers the protocol's `apply`: one mechanism on arrays from files, run in a child of the worker.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "attention/registry.hpp"
#include "core/protocol.hpp"

namespace attnbench::worker {

using Json = nlohmann::json;

/// Writes output.npy, latents.npy where the mechanism has
/// a stream, parameters/NAME.npy and, where a gradient was asked for, gradients/ROLE.npy and
/// gradients/parameter.NAME.npy into the folder `out`, which exists.
/// Returns {status: ok | wrong, reason?, implementation, implementation_reason, options, problem,
/// roles, parameters, check, files}. What makes no sense, or is not defined, comes back as {status:
/// error | unsupported, reason, refused: true}; throws what the mechanism or the allocator throw.
Json apply_arrays(const Registry& registry, const protocol::Apply& request);

}  // namespace attnbench::worker
