// PP, the causal prefix pool: what Latte is made of, and what Macchiato, exact Performer, ABC and a
// streaming Perceiver reuse.
//
// For scores k [B, H, T, L] and values v [B, H, T, D] each latent l keeps a running softmax
// average,
//   M_{t,l} = sum_{s<=t} exp(k_{s,l} - z_{t,l}) v_s,   z_{t,l} = logsumexp_{s<=t} k_{s,l},
// and a token reads y_t = sum_l p_{t,l} M_{t,l} with weights p. Dolga et al. 2024 (Latte), eq.
// 20-21. A score of -inf hides its token; a latent that has seen nothing gives 0.
//
// Every form here is right for all finite scores, ramps of tens per token included: exponentials
// are only taken of differences to a running maximum. 16-bit inputs are computed in float32.
#pragma once

#include <cstdint>

#include "attention/algorithms/tokens/operand.hpp"
#include "attention/kernels/prefix_pool.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::prefix_pool {

/// What the past comes down to. With m the running maximum of k: normaliser = sum exp(k_s - m),
/// sum = sum exp(k_s - m) v_s. (m, normaliser) rather than z: over a million tokens z's increments
/// fall below its last bit.
struct Carry {
  at::Tensor maximum;     ///< [B, H, L], -inf before the first token
  at::Tensor normaliser;  ///< [B, H, L]
  at::Tensor sum;         ///< [B, H, L, D]

  /// The same memory with batches and heads as one dimension: [N, L], [N, L], [N, L, D].
  Carry flat() const;
};

/// The carry that has seen nothing, in float32 where `like` is of 16 bits.
Carry empty_carry(std::int64_t batch, std::int64_t heads, std::int64_t latents,
                  std::int64_t value_dim, const at::TensorOptions& like);

/// What `query` [B, H, T, L] holds: the weights p themselves; logits whose softmax over l is p; or
/// logits to which z_t is added before the softmax, so that latents weigh by what they have seen:
/// with query log phi(q) and scores log phi(k) that is linear attention with positive features phi,
/// and without a denominator that could vanish.
enum class Query { weights, logits, logits_plus_z };

/// The three forms. Each returns y [B, H, T, D] in the dtype of `values`. Query and scores are
/// tensors [B, H, T, L] or L random features of narrower tokens. With a carry they continue from it
/// and advance it in place, and record nothing for gradients.

/// The vectorised form: every prefix at once, [B, H, T, L, D] in memory. Gradients by autograd.
at::Tensor materialised(const Operand& query, Query kind, const Operand& scores,
                        const at::Tensor& values, Carry* carry = nullptr);

/// Token by token: O(L D) workspace whatever T is. Its gradient keeps the inputs alone.
at::Tensor scan(const Operand& query, Query kind, const Operand& scores, const at::Tensor& values,
                Carry* carry = nullptr);

/// By chunks of `chunk` tokens, as matrix products; workspace bounded whatever T is. A chunk whose
/// running maxima rise by more than the exponent range goes through a direct form. Its gradient
/// keeps the inputs alone. The scale of a chunk is the maximum of all of it, so causality holds to
/// rounding rather than to the bit.
at::Tensor chunked(const Operand& query, Query kind, const Operand& scores,
                   const at::Tensor& values, std::int64_t chunk, Carry* carry = nullptr);

/// In one kernel, forward and backward (attention/kernels/prefix_pool.hpp): float32, float64 and
/// bfloat16 on the CPU; float32, bfloat16 and float16 on a CUDA device. Its gradient keeps the
/// inputs alone; random features are made for a few tokens at a time, backward for a few heads.
at::Tensor fused(const Operand& query, Query kind, const Operand& scores, const at::Tensor& values,
                 Carry* carry = nullptr);
/// Whether it does the problem, and the workspace of its forward pass.
Support fused_supports(const Problem& problem, std::int64_t latents);
double fused_workspace_bytes(const Problem& problem, std::int64_t latents,
                             Query kind = Query::logits);

/// Without an order: every row reads the softmax averages over all tokens, of scores [B, H, S, L]
/// and values [B, H, S, D], for a query of [B, H, T, L]. Gradients by autograd.
at::Tensor whole(const Operand& query, Query kind, const Operand& scores, const at::Tensor& values);

/// The same in one kernel (attention/kernels/whole_pool.hpp): float32, float64 and bfloat16 on the
/// CPU; float32, bfloat16 and float16 on a CUDA device. Random features, of query and scores by the
/// same omega, are made in the kernel (on CUDA of 16-bit tokens alone, up to 128 wide); elsewhere,
/// and where a gradient is wanted, before it, in float32 at least. The gradient keeps the logits and
/// the values alone.
at::Tensor whole_fused(const Operand& query, Query kind, const Operand& scores,
                       const at::Tensor& values);
/// Whether it does the problem, and the workspace of its forward pass.
Support whole_fused_supports(const Problem& problem, std::int64_t latents);
double whole_fused_workspace_bytes(const Problem& problem, std::int64_t latents, Query kind,
                                   bool features = false);

// ---- what the forms share

/// The kernels' word for it.
kernels::PoolQuery kernel_query(Query kind);

/// The empty carry, flat, for scores [B, H, T, L] and values [B, H, T, D].
Carry flat_empty_carry(const Operand& scores, const at::Tensor& values);
/// exp(from - to) for from <= to, and 0 where `from` is -inf, even if `to` is too.
at::Tensor shrink(const at::Tensor& from, const at::Tensor& to);
/// 1 / x, and 0 where x is 0.
at::Tensor reciprocal_or_zero(const at::Tensor& x);
/// p from what `query` holds, where the running sums of exp(k - maximum) are `normaliser`; 0 where
/// nothing was seen if z decides.
at::Tensor weights_of(const at::Tensor& query, Query kind, const at::Tensor& maximum,
                      const at::Tensor& normaliser);
/// What the scores' gradient subtracts for every later token: dp or, where z is in the weights too,
/// sum_l p dp, since the way through z takes back the rest.
at::Tensor subtracted(const at::Tensor& weights, const at::Tensor& gradient, Query kind);
/// The gradient of `query` from that of p.
at::Tensor query_gradient(const at::Tensor& weights, const at::Tensor& gradient, Query kind);

}  // namespace attnbench::prefix_pool
