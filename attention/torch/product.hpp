// Products of 16-bit tensors whose sums are kept in float32.
#pragma once

#include "attention/torch/torch.hpp"

namespace attnbench {

/// at::matmul(a, b), of a's dtype. On CPUs without AVX-512, and of small matrices on any, LibTorch
/// 1.13 rounds every partial sum of a product of bfloat16 to bfloat16, so that it is off by 0.007
/// at 37 terms and stops growing at 256 ones; there it is computed in float32 and rounded once, as
/// it is elsewhere.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

}  // namespace attnbench
