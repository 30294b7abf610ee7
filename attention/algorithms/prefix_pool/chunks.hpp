// The computation within chunks of the prefix pool: many chunks side by side, each with the carry
// at its left edge. M = batches * heads * chunks, c tokens in a chunk.
#pragma once

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"

namespace attnbench::prefix_pool {

struct Chunks {
  at::Tensor query;  ///< [M, c, L]; undefined if only the carry is needed
  Query kind;
  at::Tensor k;              ///< scores [M, c, L]
  at::Tensor v;              ///< values [M, c, D]
  at::Tensor e;              ///< exp(k - right_maximum) [M, c, L]: at most 1
  Carry left;                ///< [M, L], [M, L], [M, L, D]
  at::Tensor right_maximum;  ///< the running maximum at the right edge [M, L]
  at::Tensor decay;          ///< exp(left.maximum - right_maximum) [M, L]
};

/// Gradients in a chunk of its own outputs, and their contribution to the tokens on its left:
///   sum = sum_t p_t / normaliser_t exp(left.maximum - m_t) g_t [M, L, D], and normaliser likewise
/// with `subtracted` for g_t [M, L].
struct ChunkGradients {
  at::Tensor query, k, v;
  at::Tensor sum, normaliser;
};

/// Cuts query, k [N, T, L], v [N, T, D] into the chunks of `piece`, and advances `carry` (flat, N)
/// from the piece's left edge to its right edge.
Chunks cut(const at::Tensor& query, Query kind, const at::Tensor& k, const at::Tensor& v,
           const Piece& piece, Carry& carry);

/// The outputs y [M, c, D], by matrix products if the range of a chunk's running maxima permits,
/// else by a direct form in blocks of 16 tokens.
at::Tensor outputs(const Chunks& chunks);

/// The gradients of the same, given dLoss/dy [M, c, D].
ChunkGradients gradients(const Chunks& chunks, const at::Tensor& upstream);

/// Adds the contributions of later chunks to the gradients of N rows of chunks, from right to left,
/// starting from `sum` [N, L, D] and `normaliser` [N, L] (relative to the last chunk's right
/// maximum), and stores there the contribution to the tokens before the first chunk.
void sweep_left(const Chunks& chunks, ChunkGradients& gradients, at::Tensor& sum,
                at::Tensor& normaliser);

}  // namespace attnbench::prefix_pool
