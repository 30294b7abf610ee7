// LAVO's orthogonal memory (section 3.1): a context is kept as its mean's coordinates u = B x̄ along
// r learnable bases b_j, whose slots u_j b_j a query attends to:
//   a_t = softmax_j(scale (b_j.q_t) u_j),  read_t = sum_j a_{t,j} u_j b_j.
// Plain, differentiable tensor operations on a piece of the sequence, and what passes from a piece
// to the next.
#pragma once

#include "attention/torch/torch.hpp"

namespace attnbench::orthogonal_memory {

struct Memory {
  at::Tensor bases;  ///< [H, r, D], in the type of computation
  double scale = 1;
};

/// What a causal form carries from piece to piece.
struct Carry {
  at::Tensor u;          ///< [B, H, r] of the tokens remembered
  at::Tensor count;      ///< [B] of them, int64
  at::Tensor sum;        ///< [B, H, D] dissected only: of the current window's local outputs
  at::Tensor sum_count;  ///< [B] of them, int64
};

/// A carry that has seen nothing; with `sum` where `dissected`.
Carry empty_carry(std::int64_t batch, const at::Tensor& bases, bool dissected);

/// u [B, H, r] of the mean of x [B, H, S, D] over the real tokens; 0 where there is none.
at::Tensor compressed(const at::Tensor& x, const at::Tensor& mask, const Memory& memory);

/// What queries [B, H, T, D] read of one memory u [B, H, r] that they all see: [B, H, T, D].
at::Tensor read(const at::Tensor& query, const at::Tensor& u, const Memory& memory);

/// Equation 4: query t reads the mean of all tokens up to t. x [B, H, T, D]; mask [B, T] or
/// undefined.
at::Tensor running(const at::Tensor& query, const at::Tensor& x, const at::Tensor& mask,
                   const Memory& memory, Carry& carry);

/// Section 3.2: query t reads the mean of the local outputs of the windows that ended before t's
/// own began. `phase` is the first token's place in its window of `window` tokens; a piece that
/// begins inside a window must end in it or at its end.
struct Windows {
  std::int64_t window = 1;
  std::int64_t phase = 0;
  bool local_alone = false;  ///< a query with no window before it keeps all of its local output
};
/// The mean of local output and what is read, [B, H, T, D].
at::Tensor dissected(const at::Tensor& query, const at::Tensor& local, const at::Tensor& mask,
                     const Memory& memory, const Windows& windows, Carry& carry);

}  // namespace attnbench::orthogonal_memory
