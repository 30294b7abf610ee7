// The mixture of a window and latents that Macchiato is, once its inputs are ready.
//
//   y_t = p_{t,0} sum_s softmax_s(q_t . k_s) v_s + sum_{l=1..L} p_{t,l} M_{t,l},
// p_t the softmax of L + 1 logits, the first sum over the window of t, M the averages of the prefix
// pool over the same values. Latte v2, section 4.1, eq. 15-17.
#pragma once

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/algorithms/softmax/forms.hpp"

namespace attnbench::mixture {

/// Tokens of one mix. Hidden tokens have scores of -inf and finite values.
struct Call {
  at::Tensor query;   ///< logits [B, H, T, L + 1], the window's first
  at::Tensor scores;  ///< [B, H, T, L]
  SoftmaxCall local;  ///< of the window; its v [B, H, T, D] are the values of both parts
  at::Tensor values;  ///< of these T tokens, where `local` sees some of the past, too
};

enum class Form { composite, scan, chunked, fused };

/// y [B, H, T, D] in the dtype of the values. Causal, through whatever `carry` holds, where there
/// is one: it is advanced, and nothing recorded for gradients. Form::fused needs no more workspace
/// for more tokens where no gradient is asked for.
at::Tensor causal(const Call& call, Form form, std::int64_t chunk,
                  prefix_pool::Carry* carry = nullptr);

/// The same without an order of the latent part; Form::scan has no meaning here.
at::Tensor bidirectional(const Call& call, Form form);

/// Tokens that a causal form takes together where no gradient is asked for: whole pieces of the
/// chunked pool; and those whose L + 1 weights Form::fused makes at a time, of B H heads.
std::int64_t segment(std::int64_t chunk);
std::int64_t fused_segment(std::int64_t heads, std::int64_t latents, std::int64_t bytes);

}  // namespace attnbench::mixture
