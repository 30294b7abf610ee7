// The tiled softmax of bfloat16 numbers on AMX tiles.
#pragma once

#include "attention/kernels/cpu/softmax/gradient_items.hpp"
#include "attention/kernels/cpu/softmax/items.hpp"

namespace attnbench::kernels {

/// Whether they can do it: where this machine has tiles, and scores may be compared before they are
/// scaled, to which nothing is added.
inline bool amx_takes(const SoftmaxSizes& sizes) {
  return best_isa() == Isa::amx && sizes.scale != 0 && sizes.bias_reach < 0;
}

/// Call these only where `amx_takes`.
ForwardEngine<BFloat16> softmax_forward_amx(const SoftmaxSizes& sizes);
BackwardEngine<BFloat16> softmax_backward_amx(const SoftmaxSizes& sizes);

}  // namespace attnbench::kernels
