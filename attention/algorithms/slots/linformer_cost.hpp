// What Linformer costs, forward; reads the options projected_length, share_kv and per_head.
#pragma once

#include "attention/kernels/softmax.hpp"
#include "attention/mechanism.hpp"

namespace attnbench {

/// Projections and the T x L scores as whole tensors.
Cost linformer_composite_cost(const Options& options, const Problem& problem);
/// What the tiled kernel is called with: as many keys as are projected to.
kernels::SoftmaxSizes linformer_tiled_sizes(const Options& options, const Problem& problem);
/// Projections, then the tiled kernel.
Cost linformer_tiled_cost(const Options& options, const Problem& problem);

}  // namespace attnbench
