// Macchiato's mixture of a window and latents, from prepared inputs.
//
//   y_t = p_{t,0} sum_s softmax_s(q_t . k_s) v_s + sum_{l=1..L} p_{t,l} M_{t,l},
// p_t the softmax of L + 1 logits, the first sum over the window of t, M the averages of the prefix
// pool over the same values. Latte v2, section 4.1, eq. 15-17.
#pragma once

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/algorithms/softmax/softmax.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::mixture {

/// Tokens of one mix, for H heads that share G key heads. Hidden tokens have scores of -inf and
/// finite values.
struct Call {
  at::Tensor query;   ///< logits [B, H, T, L + 1], the window's first
  at::Tensor scores;  ///< [B, G, T, L]
  SoftmaxCall local;  ///< of the window; its v [B, G, T, D] are the values of both parts
  at::Tensor values;  ///< of these T tokens, while `local` includes past ones
};

enum class Form { composite, scan, chunked, fused };

/// The causal pattern: y [B, H, T, D] in the dtype of the values. With a carry it continues from
/// it, advances it and records no gradients. Without a gradient the workspace of Form::fused does
/// not grow with T.
at::Tensor causal(const Call& call, Form form, std::int64_t chunk,
                  prefix_pool::Carry* carry = nullptr);

/// The mixture with a bidirectional latent part; Form::scan is not supported.
at::Tensor bidirectional(const Call& call, Form form);

/// Tokens per segment of a causal form without a gradient: whole pieces of the chunked pool; and
/// for Form::fused the tokens whose L + 1 weights are computed at a time, for B H heads.
std::int64_t segment(std::int64_t chunk);
std::int64_t fused_segment(std::int64_t heads, std::int64_t latents, std::int64_t bytes);

/// The cost, forward: the sum of both parts. Reads the options latents_per_head, window and chunk.
Cost cost(Form form, const Options& options, const Problem& problem);
/// Whether the tiled kernel supports the window.
Support window_supports(const Options& options, const Problem& problem);

}  // namespace attnbench::mixture
