// LAVO in kernels: the local part by the tiled softmax with a bias by distance, the memory by
// attention/kernels/lavo.hpp. On the CPU in float32, float64 and bfloat16; on a CUDA
// device in float32, bfloat16 and float16, the local part's gradients in float32 where it has the
// bias.
#pragma once

#include "attention/algorithms/lavo/cost.hpp"
#include "attention/algorithms/lavo/pieces.hpp"

namespace attnbench::orthogonal_memory {

/// The bidirectional and cross patterns. Gradients keep the inputs, the local output and a number
/// for each query.
at::Tensor fused(const Call& call);

/// Causal, after `position` tokens. With a carry it is continued from and advanced in place, and
/// nothing is recorded for gradients.
at::Tensor fused_causal(const Call& call, Carry* carry, std::int64_t position);

/// One token, whose local output [B, H, 1, D] is there already.
at::Tensor fused_token(const Call& call, const at::Tensor& local, Carry& carry,
                       std::int64_t position);

Support fused_supports(const CostSizes& sizes);
/// With the threads that LibTorch has now.
Cost fused_cost(const CostSizes& sizes);

}  // namespace attnbench::orthogonal_memory
