// The tiled softmax of bfloat16 numbers on AMX tiles.
#pragma once

#include "attention/kernels/softmax_items.hpp"

namespace attnbench::kernels {

/// Call only where `best_isa` is amx.
ForwardEngine<BFloat16> softmax_forward_amx(const SoftmaxSizes& sizes);

}  // namespace attnbench::kernels
