// A recurrence over a long sequence, a piece at a time. Its gradient keeps the inputs and what was
// carried from piece to piece, nothing within: each piece is computed again and differentiated by
// autograd, from the last to the first. So that a form is written once, as plain tensor operations
// on one piece, and its workspace does not grow with the sequence.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "attention/torch/torch.hpp"

namespace attnbench {

using Tensors = std::vector<at::Tensor>;

struct Stepped {
  at::Tensor output;  ///< [B, H, n, w]
  Tensors carry;      ///< for the next piece; none of them may be a tensor that was given
};

/// One piece: its part of every token tensor [B, H, n, .] (undefined where that is), what all
/// pieces share, and what is carried.
using Step =
    std::function<Stepped(const Tensors& tokens, const Tensors& shared, const Tensors& carry)>;

/// The outputs of all pieces of `size` tokens, [B, H, T, w], and `carry` taken to the end.
/// Gradients flow to `tokens` and `shared` where they are asked for, but neither to the first
/// carry nor from the last one. `tokens[0]` is defined. A shared tensor should be of the type in
/// which sums over all pieces are to be kept.
at::Tensor by_pieces(const Step& step, const Tensors& tokens, const Tensors& shared, Tensors& carry,
                     std::int64_t size);

}  // namespace attnbench
