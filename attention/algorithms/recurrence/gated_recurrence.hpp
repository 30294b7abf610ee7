// The RG-LRU: a diagonal linear recurrence with gated decay and gated input. It is the mechanism
// rg_lru, and Macchiato can compute its latent logits from it.
//
//   r_t = sigmoid(x_t + b_r),   i_t = sigmoid(z_t + b_i),   log a_t = -8 softplus(lambda) r_t,
//   h_t = a_t h_{t-1} + sqrt(1 - a_t^2) (i_t v_t),   h_{-1} = 0,   channel by channel.
// De et al. 2024 (Griffin, arXiv:2402.19427), section 2.4, c = 8. As there, the first token is
// scaled by sqrt(1 - a^2) like the others; the published code (recurrentgemma) does not scale it,
// h_0 = i_0 v_0, which Call::first selects.
//
// 1 - a^2 is computed as -expm1(2 log a), which does not cancel for decays near 1. 16-bit inputs
// are computed in float32.
#pragma once

#include <cstdint>

#include "attention/torch/torch.hpp"
#include "core/problem.hpp"

namespace attnbench::gated_recurrence {

/// One call: recurrence (x), input (z) and value (v) [B, H, T, D], parameters [H, D].
struct Call {
  at::Tensor recurrence;
  at::Tensor input;
  at::Tensor value;
  at::Tensor lambda;
  at::Tensor recurrence_bias;
  at::Tensor input_bias;
  at::Tensor key_mask;  ///< [B, T] bool, true at real tokens; padding leaves the state unchanged
  /// [B] int64: the token of this call that begins the sequence and is not scaled, or -1.
  /// Undefined: every token is scaled.
  at::Tensor first = {};
};

/// Call::first for inputs `like` [B, H, T, D] and this mask, which may be undefined. `started` [B]
/// bool, if defined, is true for sequences that began in an earlier call; it is updated.
at::Tensor first_tokens(const at::Tensor& like, const at::Tensor& key_mask, at::Tensor started);

/// The state [B, H, D] before the first token, in float32 if `like` has 16 bits.
at::Tensor empty_state(std::int64_t batch, std::int64_t heads, std::int64_t width,
                       const at::TensorOptions& like);

/// The three forms: h [B, H, T, D] in the dtype of `value`. With a defined `state` they continue
/// from it, advance it in place and record no gradients.

/// The form for all tokens at once; blocks of 32 tokens side by side. Gradients by autograd.
at::Tensor materialised(const Call& call, at::Tensor state = {});

/// The form token by token; bounded workspace for any T. The gradient keeps only the inputs.
at::Tensor scan(const Call& call, at::Tensor state = {});

/// The form by chunks of `chunk` tokens side by side, then the state from chunk to chunk; bounded
/// workspace for any T. The gradient keeps only the inputs.
at::Tensor chunked(const Call& call, std::int64_t chunk, at::Tensor state = {});

/// The quantity that the draw of lambda makes uniform.
enum class DecayInit {
  paper,          ///< a at r = 1 in [0.9, 0.999] (De et al., section 2.4)
  recurrentgemma  ///< the square of its eighth root, in [0.9^2, 0.999^2]: a in [0.43, 0.992]
};

/// The parameter lambda [heads, width].
at::Tensor draw_lambda(std::uint64_t seed, const std::string& name, std::int64_t heads,
                       std::int64_t width, const Problem& problem,
                       DecayInit init = DecayInit::paper);

/// Tokens per piece of the scan, and chunks per piece of the chunked form.
inline constexpr std::int64_t kScanTogether = 64;
inline constexpr std::int64_t kChunksTogether = 16;

}  // namespace attnbench::gated_recurrence
