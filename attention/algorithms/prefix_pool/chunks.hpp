// What the chunked prefix pool does inside its chunks: many chunks side by side, each knowing all
// of its past from the carry at its left edge. M = batches * heads * chunks, c tokens in a chunk.
#pragma once

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"

namespace attnbench::prefix_pool {

struct Chunks {
  at::Tensor query;  ///< [M, c, L]; undefined where only the carry is asked for
  Query kind;
  at::Tensor k;              ///< scores [M, c, L]
  at::Tensor v;              ///< values [M, c, D]
  at::Tensor e;              ///< exp(k - right_maximum) [M, c, L]: at most 1
  Carry left;                ///< [M, L], [M, L], [M, L, D]
  at::Tensor right_maximum;  ///< the running maximum at the right edge [M, L]
  at::Tensor fade;           ///< exp(left.maximum - right_maximum) [M, L]
};

/// Gradients in a chunk of its own outputs, and what they send to the tokens on its left:
///   sum = sum_t p_t / normaliser_t exp(left.maximum - m_t) g_t [M, L, D], and normaliser likewise
/// with `subtracted` for g_t [M, L].
struct ChunkGradients {
  at::Tensor query, k, v;
  at::Tensor sum, normaliser;
};

/// Cuts query, k [N, T, L], v [N, T, D] at `piece`; `carry` (flat, N) is taken from the piece's
/// left edge to its right one.
Chunks cut(const at::Tensor& query, Query kind, const at::Tensor& k, const at::Tensor& v,
           const Piece& piece, Carry& carry);

/// y [M, c, D], by matrix products where the range of a chunk's running maxima allows, by a direct
/// form in pieces of 16 tokens where it does not.
at::Tensor outputs(const Chunks& chunks);

/// The gradients of the same, given dLoss/dy [M, c, D].
ChunkGradients gradients(const Chunks& chunks, const at::Tensor& upstream);

/// Adds to the gradients of N rows of chunks what reaches them from the right: goes through the
/// chunks from right to left, starting from `sum` [N, L, D] and `normaliser` [N, L] (relative to
/// the last chunk's right maximum), and leaves there what the first sends to its left.
void sweep_left(const Chunks& chunks, ChunkGradients& gradients, at::Tensor& sum,
                at::Tensor& normaliser);

}  // namespace attnbench::prefix_pool
