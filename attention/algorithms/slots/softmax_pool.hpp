// Keys and values that are pooled by the same weights: in one kernel where it can, else by two
// softmaxes.
#pragma once

#include "attention/algorithms/softmax/forms.hpp"

namespace attnbench {

struct Pooled {
  at::Tensor keys, values;  ///< [B, H, T, D], [B, H, T, Dv]
};

/// By the weights of a call whose queries see all keys that are real.
Pooled softmax_pooled(const SoftmaxCall& call);

/// Whether one kernel does: on the CPU in float32 and float64, where no gradient is wanted.
/// bfloat16 has tiles that do two softmaxes sooner.
bool pooled_at_once(const Problem& problem);
/// The workspace, at once or not.
double pooled_workspace_bytes(const Problem& problem, const kernels::SoftmaxSizes& sizes);

}  // namespace attnbench
