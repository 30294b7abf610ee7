// Linformer's projections along the sequence in a kernel, where no gradient is wanted.
#pragma once

#include "attention/mechanism.hpp"

namespace attnbench {

/// Sums of the tokens x [B, G, S, w] by their weights `by` [L, S or more] or [G, L, S or more]: [B,
/// G, L, w] in `compute_type`. A key mask [B, S] may be undefined. On the CPU; nothing is recorded.
at::Tensor project_sequence(const at::Tensor& by, const at::Tensor& x, const at::Tensor& key_mask);
/// The workspace of projecting keys or values, whichever are wider, to `slots`.
double project_sequence_workspace_bytes(const Problem& problem, std::int64_t slots);

}  // namespace attnbench
