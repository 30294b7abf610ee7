// Rotary positions, Su et al. 2021 (RoFormer, arXiv:2104.09864), section 3.2.
#pragma once

#include <cstdint>

#include "attention/torch/torch.hpp"

namespace attnbench {

enum class Turn { forth, back };

/// x [B, H, T, w] with the pair of channels (2i, 2i + 1) of token t turned by the angle
/// (first + t) base^(-2i / w'), w' the greatest even number in w; the last of an odd width stays as
/// it is. `back` undoes `forth`. Angles are computed in double, products in float32 at least, and
/// the result has the dtype of x.
at::Tensor rotated(const at::Tensor& x, std::int64_t first, double base, Turn turn);

}  // namespace attnbench
