// A memory of L slots that is read twice: which slots a token wants, and what they hold.
//
//   u_{s,l} = scale latent_l . pack_key_s,   w_{s,l} = omega(u_{s,l}),
//   a_{t,l} = scale sum_{s<=t} w_{s,l} (q_t . k_s) / n_{t,l},   beta_t = softmax_l(a_t),
//   y_t = sum_l beta_{t,l} sum_{s<=t} w_{s,l} v_s / n_{t,l}.
//
// With omega = exp, n_{t,l} = sum_{s<=t} w_{s,l}: slots hold averages of keys and values (a
// Perceiver as a stream). With the others n_t is the number of tokens seen (Ma et al. 2021, Luna,
// its causal form). 16-bit inputs are computed in float32.
#pragma once

#include "attention/algorithms/recurrence/by_pieces.hpp"
#include "attention/algorithms/tokens/blocks.hpp"

namespace attnbench::slot_memory {

/// omega: exp; log2(1 + 2^u); elu(u) + 1; or softplus(elu(u) + 1).
enum class Weight { exponential, softplus_b2, elu_plus_one, composed };

struct Form {
  Weight weight = Weight::exponential;
  double scale = 1;
};

/// What was said; [B, H, T, .] but `latents` [B, H, L, D].
struct Call {
  at::Tensor latents;
  at::Tensor query;
  at::Tensor pack_key;
  at::Tensor key;
  at::Tensor value;  ///< undefined: the keys are the values
  /// [B, 1, T, 1] bool, true at tokens that are not there, whatever the others hold there;
  /// undefined = all are.
  at::Tensor hidden;
};

/// What the past comes down to.
struct Memory {
  at::Tensor maximum;     ///< of u [B, H, L]; undefined unless omega = exp
  at::Tensor normaliser;  ///< n [B, H, L] relative to the maximum, or [B, H, 1]
  at::Tensor sum;         ///< of w k and, where values are not the keys, w v: [B, H, L, D (+ Dv)]
};

/// The memory that has seen nothing, in float32 where `like` is of 16 bits.
Memory empty_memory(const Form& form, const std::vector<std::int64_t>& sum_sizes,
                    const at::TensorOptions& like);

/// The forms: y [B, H, T, Dv] in the dtype of the query. With a memory they continue from it and
/// advance it in place, and record nothing for gradients.

/// All memories at once, in plain tensor operations: O(T L D) numbers. Gradients by autograd.
at::Tensor materialised(const Call& call, const Form& form, Memory* memory = nullptr);

/// By matrix products over chunks of `chunk` tokens; a chunk of one is the recurrence itself, and
/// so is one in which the running maximum of u rises beyond the exponent range. Workspace is
/// bounded whatever T is; the gradient keeps the inputs and a memory now and then. With omega = exp
/// the scale is the maximum of a whole chunk, so causality holds to rounding rather than to the
/// bit.
at::Tensor chunked(const Call& call, const Form& form, std::int64_t chunk,
                   Memory* memory = nullptr);

/// For all weights but exp, by two causal products in one kernel each (forms/causal_product.hpp),
/// a few tokens at a time. Where gradients are wanted all tokens are taken together, and autograd
/// keeps O(T L) numbers.
at::Tensor fused(const Call& call, const Form& form, Memory* memory = nullptr);

// ---- what the forms share

/// omega(u) for all but exp.
at::Tensor weight_of(const at::Tensor& scores, Weight weight);
/// 1 / x, and 0 without a gradient where x is 0.
at::Tensor reciprocal_or_zero(const at::Tensor& x);
/// softmax(scale query key^T) over the keys that are not hidden ([.., 1 or T, S] bool, undefined =
/// none is); 0, without a gradient, where all are.
at::Tensor shown_weights(const at::Tensor& query, const at::Tensor& key, double scale,
                         const at::Tensor& hidden = {});

}  // namespace attnbench::slot_memory
