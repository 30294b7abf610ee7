// LAVO's orthogonal memory (section 3.1): a context is kept as its mean's coordinates u = B x̄ along
// r learnable bases b_j, whose slots u_j b_j a query attends to:
//   a_t = softmax_j(scale (b_j.q_t) u_j),  read_t = sum_j a_{t,j} u_j b_j.
#pragma once

#include "attention/algorithms/softmax/relative_band.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::lavo {

// ---- one piece of the sequence, in plain differentiable tensor operations (lavo.cpp)

struct Memory {
  at::Tensor bases;  ///< [H, r, D], in the dtype of computation
  double scale = 1;
};

/// The carry of a causal form from piece to piece.
struct Carry {
  at::Tensor u;          ///< [B, H, r] of the remembered tokens
  at::Tensor count;      ///< [B] of them, int64
  at::Tensor sum;        ///< [B, H, D] dissected only: of the current window's local outputs
  at::Tensor sum_count;  ///< [B] of them, int64
};

/// The carry before the first token; with `sum` if `dissected`.
Carry empty_carry(std::int64_t batch, const at::Tensor& bases, bool dissected);

/// The coordinates u [B, H, r] of the mean of x [B, H, S, D] over the real tokens; 0 if there is
/// none.
at::Tensor compressed(const at::Tensor& x, const at::Tensor& mask, const Memory& memory);

/// The read of queries [B, H, T, D] from one memory u [B, H, r] that all of them see: [B, H, T, D].
at::Tensor read(const at::Tensor& query, const at::Tensor& u, const Memory& memory);

/// Equation 4: query t reads the mean of all tokens up to t. x [B, H, T, D]; mask [B, T] or
/// undefined.
at::Tensor running(const at::Tensor& query, const at::Tensor& x, const at::Tensor& mask,
                   const Memory& memory, Carry& carry);

/// Section 3.2: query t reads the mean of the local outputs of the windows before t's own. `phase`
/// is the first token's place in its window of `window` tokens; a piece that begins inside a window
/// must end in it or at its end.
struct Windows {
  std::int64_t window = 1;
  std::int64_t phase = 0;
  bool local_alone = false;  ///< a query without a window before it keeps its whole local output
};
/// The mean of local output and read, [B, H, T, D].
at::Tensor dissected(const at::Tensor& query, const at::Tensor& local, const at::Tensor& mask,
                     const Memory& memory, const Windows& windows, Carry& carry);

// ---- the whole sequence, at once or in pieces, so that workspace does not grow with it
// (pieces.cpp)

/// The inputs of one mix [B, H, T, D], any strides, and the parameters.
struct Call {
  /// Dissected: queries, keys, values and the band of the local part; key_mask covers the keys.
  /// Plain: only q, and key_mask of the context.
  SoftmaxCall local;
  at::Tensor context;  ///< plain: the tokens to compress; undefined = dissected
  RelativeBias bias;
  at::Tensor bases;  ///< [H, r, D]
  double scale = 1;  ///< on q.b_j
  std::int64_t window = 1;
  bool local_alone = false;  ///< as in Windows

  bool plain() const { return context.defined(); }
};

/// Every query reads the memory of all real tokens: the bidirectional and cross patterns.
at::Tensor bidirectional(const Call& call);

/// The causal pattern, from `carry` on, which is advanced, after `position` tokens. At most `most`
/// tokens per piece, in whole windows if that permits it. Differentiable if there is a single
/// piece, as from position 0 with `most` no less than the tokens.
at::Tensor causal(const Call& call, Carry& carry, std::int64_t position, std::int64_t most);

/// The causal pattern from the first token, differentiable: the backward pass recomputes the pieces
/// from the last to the first, each from the carry at its start.
at::Tensor causal_recomputed(const Call& call, std::int64_t most);

/// One token with its local output [B, H, 1, D].
at::Tensor token(const Call& call, const at::Tensor& local, Carry& carry, std::int64_t position);

// ---- in kernels (fused.cpp): the local part by the tiled softmax with a bias by distance, the
// memory by attention/kernels/lavo.hpp. On the CPU in float32, float64 and bfloat16; on a CUDA
// device in float32, bfloat16 and float16, with a bias the local part's gradients in float32.

/// The bidirectional and cross patterns. The gradient keeps the inputs, the local output and one
/// number per query.
at::Tensor fused(const Call& call);

/// The causal pattern, after `position` tokens. With a carry it continues from it, advances it in
/// place and records no gradients.
at::Tensor fused_causal(const Call& call, Carry* carry, std::int64_t position);

/// One token with its local output [B, H, 1, D].
at::Tensor fused_token(const Call& call, const at::Tensor& local, Carry& carry,
                       std::int64_t position);

// ---- costs, forward

struct CostSizes {
  Problem problem;
  std::int64_t bases = 1;  ///< r
  Window window;           ///< of the local part
  bool plain = false;
  bool biased = false;       ///< whether the local part has a bias by distance
  bool undissected = false;  ///< a local part beside the plain form's memory

  bool remembers_tokens() const { return plain || undissected; }
};

/// The cost common to all forms: model FLOPs, minimal bytes, state; and the FLOPs of the memory.
Cost common_cost(const CostSizes& sizes);
double memory_flops(const CostSizes& sizes);

Cost whole_cost(const CostSizes& sizes);
/// Pieces of at most `most` tokens; the causal pattern only.
Cost pieces_cost(const CostSizes& sizes, std::int64_t most);
/// The workspace depends on LibTorch's current number of threads.
Cost fused_cost(const CostSizes& sizes);
Support fused_supports(const CostSizes& sizes);

}  // namespace attnbench::lavo
