// The tiled softmax of bfloat16 numbers by instructions that multiply pairs of them: AMX_BF16 or
// AVX512_BF16.
#pragma once

#include "attention/kernels/cpu/softmax/gradient_items.hpp"
#include "attention/kernels/cpu/softmax/items.hpp"

namespace attnbench::kernels {

/// Whether they can do it: where this machine has such instructions, and scores may be compared
/// before they are scaled, to which nothing is added.
inline bool bfloat16_takes(const SoftmaxSizes& sizes) {
  return best_isa() >= Isa::avx512_bf16 && sizes.scale != 0 && sizes.bias_reach < 0;
}

/// Call these only where `bfloat16_takes`.
ForwardEngine<BFloat16> softmax_forward_bfloat16(const SoftmaxSizes& sizes);
BackwardEngine<BFloat16> softmax_backward_bfloat16(const SoftmaxSizes& sizes);

}  // namespace attnbench::kernels
