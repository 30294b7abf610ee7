// A recurrence over a long sequence, piece by piece. The gradient keeps the inputs and the carry at
// the start of each piece; from the last piece to the first it recomputes each piece and
// differentiates it by autograd. So a form is written once, as plain tensor operations on one
// piece, and its workspace does not grow with the sequence.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "attention/torch/torch.hpp"

namespace attnbench {

using Tensors = std::vector<at::Tensor>;

struct Stepped {
  at::Tensor output;  ///< [B, H, n, w]
  Tensors carry;      ///< for the next piece; must not be one of the arguments
};

/// Computes one piece from its part of every token tensor [B, H, n, .] (undefined if the whole is),
/// the tensors that all pieces share, and the carry.
using Step =
    std::function<Stepped(const Tensors& tokens, const Tensors& shared, const Tensors& carry)>;

/// The outputs of all pieces of `size` tokens, [B, H, T, w]; `carry` is advanced to the end.
/// Gradients flow to `tokens` and `shared` if required, but neither to the first carry nor from the
/// last one. `tokens[0]` must be defined. A shared tensor should have the dtype for sums over all
/// pieces.
at::Tensor by_pieces(const Step& step, const Tensors& tokens, const Tensors& shared, Tensors& carry,
                     std::int64_t size);

}  // namespace attnbench
