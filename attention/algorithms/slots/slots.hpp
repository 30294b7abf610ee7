// A memory of L slots, which a token reads twice: first the weight of each slot, then its content.
//
//   u_{s,l} = scale latent_l . pack_key_s,   w_{s,l} = omega(u_{s,l}),
//   a_{t,l} = scale sum_{s<=t} w_{s,l} (q_t . k_s) / n_{t,l},   beta_t = softmax_l(a_t),
//   y_t = sum_l beta_{t,l} sum_{s<=t} w_{s,l} v_s / n_{t,l}.
//
// With omega = exp, n_{t,l} = sum_{s<=t} w_{s,l}: slots hold averages of keys and values (a
// streaming Perceiver). With the others n_t is the number of tokens seen (the causal form of Luna,
// Ma et al. 2021). 16-bit inputs are computed in float32.
#pragma once

#include <limits>

#include "attention/algorithms/recurrence/by_pieces.hpp"
#include "attention/algorithms/softmax/softmax.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::slots {

/// Its negative is the score of a hidden token.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The weight function omega: exp; log2(1 + 2^u); elu(u) + 1; or softplus(elu(u) + 1).
enum class Weight { exponential, softplus_b2, elu_plus_one, composed };

struct Form {
  Weight weight = Weight::exponential;
  double scale = 1;
};

/// The inputs, [B, H, T, .], `latents` [B, H, L, D].
struct Call {
  at::Tensor latents;
  at::Tensor query;
  at::Tensor pack_key;
  at::Tensor key;
  at::Tensor value;   ///< undefined: the keys are the values
  at::Tensor hidden;  ///< [B, 1, T, 1] bool, true at padding, which may hold anything; or undefined
};

/// The state.
struct Memory {
  at::Tensor maximum;     ///< of u [B, H, L]; undefined unless omega = exp
  at::Tensor normaliser;  ///< n [B, H, L] relative to the maximum, or [B, H, 1]
  at::Tensor sum;         ///< of w k and, where values are not the keys, w v: [B, H, L, D (+ Dv)]
};

/// The memory before the first token, in float32 if `like` has 16 bits.
Memory empty_memory(const Form& form, const std::vector<std::int64_t>& sum_sizes,
                    const at::TensorOptions& like);

/// The causal forms: y [B, H, T, Dv] in the dtype of the query. With a memory they continue from
/// it, advance it in place and record no gradients.

/// The form for all memories at once, in plain tensor operations: O(T L D) numbers. Gradients by
/// autograd.
at::Tensor materialised(const Call& call, const Form& form, Memory* memory = nullptr);

/// The form by matrix products over chunks of `chunk` tokens; a chunk of one token is the
/// recurrence itself, as is a chunk in which the running maximum of u rises beyond the exponent
/// range. Bounded workspace for any T; the gradient keeps the inputs and the memory at the start of
/// each piece. With omega = exp the scale is the maximum of a whole chunk, so causality holds up to
/// rounding, not to the bit.
at::Tensor chunked(const Call& call, const Form& form, std::int64_t chunk,
                   Memory* memory = nullptr);

/// The form for all weights but exp: two causal products in one kernel each
/// (causal_product/fused.cpp), a few tokens at a time. With a gradient all tokens are processed at
/// once, and autograd keeps O(T L) numbers.
at::Tensor fused(const Call& call, const Form& form, Memory* memory = nullptr);

// ---- keys and values pooled by the same weights (softmax_pool.cpp)

struct Pooled {
  at::Tensor keys, values;  ///< [B, H, T, D], [B, H, T, Dv]
};

/// The pool by the weights of a call whose queries see all real keys.
Pooled softmax_pooled(const SoftmaxCall& call);

/// Whether one kernel is used: on the CPU in float32 and float64, without a gradient. In bfloat16
/// two tiled softmaxes are faster.
bool pooled_at_once(const Problem& problem);
/// The workspace of either.
double pooled_workspace_bytes(const Problem& problem, const kernels::SoftmaxSizes& sizes);

// ---- costs, forward

struct Sizes {
  Problem problem;
  double latents = 1;      ///< L, per head
  bool tied = false;       ///< values are the keys
  bool averaging = false;  ///< omega = exp: keys and values are pooled with the same weights

  double heads() const { return static_cast<double>(problem.batch * problem.heads); }
  double queries() const { return static_cast<double>(problem.length); }
  double keys() const { return static_cast<double>(problem.key_length); }
  double width() const { return static_cast<double>(problem.head_dim); }
  double value_width() const { return static_cast<double>(problem.value_dim); }
  /// Columns of a slot: keys, and values if they are not the keys.
  double columns() const { return width() + (tied ? 0 : value_width()); }
  double bytes() const { return static_cast<double>(bytes_of(problem.dtype)); }
  /// Bytes of one element in computation: at least float32.
  double wide_bytes() const { return bytes() > 4 ? bytes() : 4; }
};

/// The patterns without an order: softmax over the tokens, then over the slots, in tensor
/// operations.
Cost bidirectional_cost(const Sizes& sizes);
/// The cost by the tiled softmax: as many queries as slots against all tokens, then all tokens
/// against the slots. A Perceiver packs keys and values at once, or one after the other with the
/// same weights computed twice.
Cost tiled_cost(const Sizes& sizes);
Support tiled_supports(const Sizes& sizes);

/// The causal forms. The workspace of `fused` depends on LibTorch's current number of threads.
Cost materialised_cost(const Sizes& sizes);
Cost chunked_cost(const Sizes& sizes, double chunk);
Cost fused_cost(const Sizes& sizes);
Support fused_supports(const Sizes& sizes);

// ---- shared by the forms

/// omega(u) for all but exp.
at::Tensor weight_of(const at::Tensor& scores, Weight weight);
/// 1 / x, and 0 without a gradient if x is 0.
at::Tensor reciprocal_or_zero(const at::Tensor& x);
/// [B, 1, 1, S], true at padding, for a mask [B, S]; undefined without one.
at::Tensor hidden_keys(const at::Tensor& key_mask);
/// softmax(scale query key^T) over the keys that are not hidden ([.., 1 or T, S] bool, undefined =
/// none is); 0, without a gradient, if all are.
at::Tensor softmax_weights(const at::Tensor& query, const at::Tensor& key, double scale,
                           const at::Tensor& hidden = {});

}  // namespace attnbench::slots
