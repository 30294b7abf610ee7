// The causal prefix pool: what Latte consists of, and what Macchiato, exact Performer and a
// streaming Perceiver reuse.
//
// For scores k [B, H, T, L] and values v [B, H, T, D] each latent l keeps a running softmax
// average,
//   M_{t,l} = sum_{s<=t} exp(k_{s,l} - z_{t,l}) v_s,   z_{t,l} = logsumexp_{s<=t} k_{s,l},
// and a token reads y_t = sum_l p_{t,l} M_{t,l} with weights p. Dolga et al. 2024 (Latte), eq.
// 20-21. A score of -inf hides its token; a latent without a visible token gives 0.
//
// Every form is exact for all finite scores, ramps of tens per token included: exponentials are
// taken only of differences to a running maximum. 16-bit inputs are computed in float32.
//
// Scores, values and carry may have fewer heads, G, a divisor of the query's H: the weights of
// H / G heads then read the averages of one key head.
#pragma once

#include <cstdint>

#include "attention/algorithms/tokens/operand.hpp"
#include "attention/kernels/prefix_pool.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::prefix_pool {

/// The state. With m the running maximum of k: normaliser = sum exp(k_s - m),
/// sum = sum exp(k_s - m) v_s. (m, normaliser) rather than z: over a million tokens z's increments
/// fall below its last bit.
struct Carry {
  at::Tensor maximum;     ///< [B, G, L], -inf before the first token
  at::Tensor normaliser;  ///< [B, G, L]
  at::Tensor sum;         ///< [B, G, L, D]

  /// The carry in the same storage, with batches and heads as one dimension: [N, L], [N, L], [N, L,
  /// D].
  Carry flat() const;
};

/// The carry before the first token, in float32 if `like` has 16 bits.
Carry empty_carry(std::int64_t batch, std::int64_t heads, std::int64_t latents,
                  std::int64_t value_dim, const at::TensorOptions& like);

/// The content of `query` [B, H, T, L]: the weights p; logits whose softmax over l is p; or logits
/// to which z_t is added before the softmax, so that each latent is weighted by its normaliser:
/// with query log phi(q) and scores log phi(k) that is linear attention with positive features phi,
/// without a denominator that could vanish.
enum class Query { weights, logits, logits_plus_z };

/// The forms. Each returns y [B, H, T, D] in the dtype of `values` [B, G, T, D]. The query is a
/// tensor [B, H, T, L], the scores are one [B, G, T, L], or L random features of narrower tokens.
/// With a carry they continue from it, advance it in place and record no gradients. All but the
/// first repeat scores, values and, while they run, the carry for the heads of the query.

/// The form for all prefixes at once, [B, G, T, L, D] in memory. Gradients by autograd.
at::Tensor materialised(const Operand& query, Query kind, const Operand& scores,
                        const at::Tensor& values, Carry* carry = nullptr);

/// The form token by token: O(L D) workspace for any T. The gradient keeps only the inputs.
at::Tensor scan(const Operand& query, Query kind, const Operand& scores, const at::Tensor& values,
                Carry* carry = nullptr);

/// The form by chunks of `chunk` tokens, as matrix products; bounded workspace for any T. A chunk
/// whose running maxima rise by more than the exponent range is computed by a direct form. The
/// gradient keeps only the inputs. The scale of a chunk is its overall maximum, so causality holds
/// up to rounding, not to the bit.
at::Tensor chunked(const Operand& query, Query kind, const Operand& scores,
                   const at::Tensor& values, std::int64_t chunk, Carry* carry = nullptr);

/// The form with one kernel each forward and backward (attention/kernels/prefix_pool.hpp): float32,
/// float64 and bfloat16 on the CPU; float32, bfloat16 and float16 on a CUDA device. The gradient
/// keeps only the inputs. Random features are computed for a few tokens at a time forward, for a
/// few heads at a time backward.
at::Tensor fused(const Operand& query, Query kind, const Operand& scores, const at::Tensor& values,
                 Carry* carry = nullptr);
/// Whether it supports the problem, and the workspace of its forward pass.
Support fused_supports(const Problem& problem, std::int64_t latents);
double fused_workspace_bytes(const Problem& problem, std::int64_t latents,
                             Query kind = Query::logits);

/// The pool that is not causal: every row reads the softmax averages over all tokens, of scores [B,
/// G, S, L] and values [B, G, S, D], with a query [B, H, T, L]. Gradients by autograd.
at::Tensor whole(const Operand& query, Query kind, const Operand& scores, const at::Tensor& values);

/// The pool that is not causal in one kernel (attention/kernels/whole_pool.hpp) on the CPU:
/// float32, float64 and bfloat16. Random features, of query and scores with the same omega, are
/// computed in the kernel; with a gradient before it, in float32 at least. The gradient keeps only
/// the logits and the values.
at::Tensor whole_fused(const Operand& query, Query kind, const Operand& scores,
                       const at::Tensor& values);
/// Whether it supports the problem, and the workspace of its forward pass.
Support whole_fused_supports(const Problem& problem);
double whole_fused_workspace_bytes(const Problem& problem, std::int64_t latents, Query kind,
                                   bool features = false);

// ---- costs, forward, the softmax of the query logits included

struct PoolSizes {
  double heads = 1;    ///< batch times heads
  double tokens = 1;   ///< T
  double latents = 1;  ///< L, per head
  double width = 1;    ///< D of the values
  double bytes = 4;    ///< of one element of the inputs
  double sharing = 1;  ///< query heads to a key head
  /// Whether scores and values are copied for the query heads that share them.
  bool repeated = false;

  double key_heads() const { return heads / sharing; }
  /// Bytes of one element in computation: at least float32.
  double wide_bytes() const { return bytes > 4 ? bytes : 4; }
  double repeated_bytes() const {
    return repeated ? heads * tokens * (latents + width) * bytes : 0;
  }
};
/// The sizes of a pool of `latents` for each head, over the problem's tokens and values.
PoolSizes pool_sizes(const Problem& problem, std::int64_t latents);

/// The cost of `whole`, with `tokens` queries and this many keys.
Cost whole_cost(const PoolSizes& sizes, double keys);
Cost materialised_cost(const PoolSizes& sizes);
Cost scan_cost(const PoolSizes& sizes);
Cost chunked_cost(const PoolSizes& sizes, double chunk);
/// The kernels' workspaces depend on LibTorch's current number of threads.
Cost fused_cost(const PoolSizes& sizes, const Problem& problem);
Cost whole_fused_cost(const PoolSizes& sizes, const Problem& problem, Query kind);

// ---- shared by the forms

/// The kind of query in the kernels' enumeration.
kernels::PoolQuery kernel_query(Query kind);

/// What G key heads have, once for each of H query heads.
struct RepeatedHeads {
  /// `carry` may be null.
  RepeatedHeads(std::int64_t heads, const Operand& scores, const at::Tensor& values,
                const Carry* carry);
  /// What the carry has become, for one head of each key head.
  void keep(const Carry& carry) const;

  Operand scores;
  at::Tensor values;
  Carry carry;
};

/// form(scores, values, carry), a causal form for as many key heads as the query has heads, from
/// fewer of them; the carry is advanced as the form advances it.
template <class Form>
at::Tensor for_query_heads(const Operand& query, const Operand& scores, const at::Tensor& values,
                           Carry* carry, const Form& form) {
  const std::int64_t heads = query.whole.size(1);
  if (heads == values.size(1)) return form(scores, values, carry);
  RepeatedHeads repeated(heads, scores, values, carry);
  const at::Tensor y =
      form(repeated.scores, repeated.values, carry == nullptr ? nullptr : &repeated.carry);
  if (carry != nullptr) repeated.keep(*carry);
  return y;
}

/// The empty carry, flat, for scores [B, H, T, L] and values [B, H, T, D].
Carry flat_empty_carry(const Operand& scores, const at::Tensor& values);
/// exp(from - to) for from <= to, and 0 where `from` is -inf, even if `to` is too.
at::Tensor shrink(const at::Tensor& from, const at::Tensor& to);
/// 1 / x, and 0 where x is 0.
at::Tensor reciprocal_or_zero(const at::Tensor& x);
/// The weights p from `query`, with `normaliser` the running sums of exp(k - maximum); for
/// logits_plus_z 0 if no token is visible.
at::Tensor weights_of(const at::Tensor& query, Query kind, const at::Tensor& maximum,
                      const at::Tensor& normaliser);
/// What the scores' gradient subtracts for every later token: dp, or for logits_plus_z sum_l p dp,
/// since the gradient through z cancels the rest.
at::Tensor subtracted(const at::Tensor& weights, const at::Tensor& gradient, Query kind);
/// The gradient of `query` from that of p.
at::Tensor query_gradient(const at::Tensor& weights, const at::Tensor& gradient, Query kind);

}  // namespace attnbench::prefix_pool
