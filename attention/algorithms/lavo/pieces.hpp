// LAVO over a whole sequence: all at once, or piece by piece so that workspace does not grow with
// it.
#pragma once

#include "attention/algorithms/lavo/memory.hpp"
#include "attention/algorithms/softmax/relative_band.hpp"

namespace attnbench::orthogonal_memory {

/// The inputs of one mix [B, H, T, D], any strides, and the parameters.
struct Call {
  /// Dissected: queries, keys, values and the band of the local part; key_mask covers the keys.
  /// Plain: only q and, of the context's tokens, key_mask.
  SoftmaxCall local;
  at::Tensor context;  ///< plain: what is compressed; undefined = dissected
  RelativeBias bias;
  at::Tensor bases;  ///< [H, r, D]
  double scale = 1;  ///< on q.b_j
  std::int64_t window = 1;
  bool local_alone = false;  ///< as in Windows

  bool plain() const { return context.defined(); }
};

/// Every query reads the memory of all real tokens: the bidirectional and cross patterns.
at::Tensor bidirectional(const Call& call);

/// Causal, from `carry` on, which is advanced; `position` tokens came before. No more than `most`
/// tokens are taken together, and windows are kept whole where that allows it. Differentiable where
/// one piece suffices: always from position 0 with `most` no less than the tokens.
at::Tensor causal(const Call& call, Carry& carry, std::int64_t position, std::int64_t most);

/// The same from nothing, differentiable: the backward pass goes through the pieces from the last
/// to the first and computes each anew from the carry that it began with.
at::Tensor causal_recomputed(const Call& call, std::int64_t most);

/// One token, whose local output [B, H, 1, D] is there already.
at::Tensor token(const Call& call, const at::Tensor& local, Carry& carry, std::int64_t position);

}  // namespace attnbench::orthogonal_memory
