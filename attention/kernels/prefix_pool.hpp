// PP, the causal prefix pool, on the CPU: what Latte, Macchiato and exact Performer are made of.
//
//   y_t = sum_l p_{t,l} M_{t,l},   M_{t,l} = sum_{s<=t} exp(k_{s,l} - z_{t,l}) v_s,
//   z_{t,l} = logsumexp_{s<=t} k_{s,l}.   Dolga et al. 2024 (Latte), equations 20 and 21.
//
// Tokens are taken by blocks whose scores are measured against one maximum a latent; a block in
// which a latent's running maximum rises too far for the exponents is cut until it does not, so
// that any finite scores give the right answer. See softmax.hpp for the shape of a kernel family.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/rows.hpp"
#include "attention/kernels/team.hpp"

namespace attnbench::kernels {

/// What the query holds: the weights p; logits of which p is the softmax over l; or logits to which
/// z_t is added before that softmax (exact Performer, linear attention with phi = exp).
enum class PoolQuery { weights, logits, logits_plus_z };

struct PrefixPoolSizes {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t length = 0;
  std::int64_t latents = 0;
  std::int64_t value_dim = 0;
  PoolQuery query = PoolQuery::logits;
  /// Factor on the logits of scores and, unless they are weights, queries.
  double scale = 1;

  std::int64_t memory_rows() const { return latents; }
};

/// What the past comes down to, dense, computed as Compute<T>: m the running maximum of the scaled
/// scores, sum exp(k_s - m), and sum exp(k_s - m) v_s. Null pointers: nothing came before, and
/// nothing is kept.
template <class R>
struct PoolCarry {
  R* maximum = nullptr;     ///< [batch, heads, latents], -infinity before the first token
  R* normaliser = nullptr;  ///< [batch, heads, latents]
  R* sum = nullptr;         ///< [batch, heads, latents, value_dim]
};

template <class T>
struct PrefixPoolArguments {
  Rows<const T> query;   ///< [batch, heads, length, latents]
  Rows<const T> scores;  ///< [batch, heads, length, latents]
  Rows<const T> values;  ///< [batch, heads, length, value_dim]
  /// [batch, length], rows apart by mask_stride; 0 hides the token. Null = all are real.
  const std::uint8_t* key_mask = nullptr;
  std::int64_t mask_stride = 0;
  /// [batch, heads, length, value_dim], apart from the inputs: results gather there
  Rows<T> out;
  /// Continued from and advanced in place.
  PoolCarry<Compute<T>> carry;
};

template <class T>
std::size_t prefix_pool_forward_bytes(const PrefixPoolSizes& sizes, int threads);
template <class T>
void prefix_pool_forward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                         ThreadTeam& team, void* workspace, std::size_t workspace_bytes);

/// Gradients with respect to query, scores and values, from that of `out`. Everything is computed
/// anew from the inputs; a carry is not taken into account. Gradients are written, not added to,
/// apart from the inputs.
template <class T>
struct PrefixPoolGradients {
  Rows<const T> d_out;
  Rows<T> d_query;
  Rows<T> d_scores;
  Rows<T> d_values;
};

template <class T>
std::size_t prefix_pool_backward_bytes(const PrefixPoolSizes& sizes, int threads);
template <class T>
void prefix_pool_backward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                          const PrefixPoolGradients<T>& gradients, ThreadTeam& team,
                          void* workspace, std::size_t workspace_bytes);

}  // namespace attnbench::kernels
