// Answers the protocol's `apply`: one mechanism on arrays from files, run in a child of the worker.
#pragma once

#include "attention/registry.hpp"
#include "core/protocol.hpp"

namespace attnbench::worker {

/// Writes output.npy, latents.npy where the mechanism has a stream, parameters/NAME.npy and, where
/// a gradient was asked for, gradients/ROLE.npy and gradients/parameter.NAME.npy into the folder
/// `out`, which exists. What makes no sense, or is not defined, comes back as error or unsupported,
/// and refused; throws what the mechanism or the allocator throw.
protocol::ApplyAnswer apply_arrays(const Registry& registry, const protocol::Apply& request);

}  // namespace attnbench::worker
