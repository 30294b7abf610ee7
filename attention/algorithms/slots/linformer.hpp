// Linformer's projections along the sequence, and its costs, forward. The costs read the options
// projected_length, share_kv and per_head.
#pragma once

#include "attention/kernels/softmax.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::linformer {

/// Sums of the tokens x [B, G, S, w] with the weights `by` [L, S or more] or [G, L, S or more]:
/// [B, G, L, w] in `type`. A key mask [B, S] may be undefined. With `in_kernel`, on the CPU and
/// without a gradient, the result comes from a kernel, in `compute_type`.
at::Tensor projected(const at::Tensor& by, const at::Tensor& x, const at::Tensor& key_mask,
                     at::ScalarType type, bool in_kernel);

/// Projections and the T x L scores as whole tensors.
Cost composite_cost(const Options& options, const Problem& problem);

/// The sizes of the tiled kernel's call: as many keys as the projected length.
kernels::SoftmaxSizes tiled_sizes(const Options& options, const Problem& problem);
/// The cost of the projections, then the tiled kernel.
Cost tiled_cost(const Options& options, const Problem& problem);

}  // namespace attnbench::linformer
