// The RG-LRU: a diagonal linear recurrence whose decay and input are gated, what the mechanism
// rg_lru is and what Macchiato's latent logits can be computed from.
//
//   r_t = sigmoid(x_t + b_r),   i_t = sigmoid(z_t + b_i),   log a_t = -8 softplus(lambda) r_t,
//   h_t = a_t h_{t-1} + sqrt(1 - a_t^2) (i_t v_t),   h_{-1} = 0,   channel by channel.
// De et al. 2024 (Griffin, arXiv:2402.19427), section 2.4, c = 8. As there, the first token is
// scaled by sqrt(1 - a^2) like the others; the published code (recurrentgemma) takes it as it is,
// h_0 = i_0 v_0, which Call::first asks for.
//
// 1 - a^2 is taken as -expm1(2 log a): decays near 1 are the rule, and nothing of them cancels.
// 16-bit inputs are computed in float32.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "attention/torch/torch.hpp"

namespace attnbench::gated_recurrence {

/// One call: recurrence (x), input (z) and value (v) [B, H, T, D], parameters [H, D].
struct Call {
  at::Tensor recurrence;
  at::Tensor input;
  at::Tensor value;
  at::Tensor lambda;
  at::Tensor recurrence_bias;
  at::Tensor input_bias;
  at::Tensor key_mask;  ///< [B, T] bool, true where real; the state passes by other tokens
  /// [B] of int64: the token of this call that begins the sequence and is not scaled, -1 where
  /// there is none. Undefined: every token is scaled.
  at::Tensor first = {};
};

/// Call::first for inputs `like` [B, H, T, D] with this mask, which may be undefined. `started` [B]
/// of bool, where defined, is true for sequences that began in an earlier call; it is advanced.
at::Tensor first_tokens(const at::Tensor& like, const at::Tensor& key_mask, at::Tensor started);

/// The state [B, H, D] that has seen nothing, in float32 where `like` is of 16 bits.
at::Tensor empty_state(std::int64_t batch, std::int64_t heads, std::int64_t width,
                       const at::TensorOptions& like);

/// The three forms: h [B, H, T, D] in the dtype of `value`. A `state`, where defined, is continued
/// from and advanced in place; nothing is then recorded for gradients.

/// Everything for all tokens at once; blocks of 32 tokens side by side. Gradients by autograd.
at::Tensor materialised(const Call& call, at::Tensor state = {});

/// Token by token; workspace bounded whatever T is. Its gradient keeps the inputs alone.
at::Tensor scan(const Call& call, at::Tensor state = {});

/// Chunks of `chunk` tokens side by side, then the state from chunk to chunk; workspace bounded
/// whatever T is. Its gradient keeps the inputs alone.
at::Tensor chunked(const Call& call, std::int64_t chunk, at::Tensor state = {});

/// What lambda is drawn to make uniform.
enum class DecayInit {
  paper,          ///< a at r = 1 in [0.9, 0.999] (De et al., section 2.4)
  recurrentgemma  ///< the square of its eighth root, in [0.9^2, 0.999^2]: a in [0.43, 0.992]
};

/// lambda [heads, width].
at::Tensor draw_lambda(std::uint64_t seed, const std::string& name, std::int64_t heads,
                       std::int64_t width, const Problem& problem,
                       DecayInit init = DecayInit::paper);

/// Tokens that the scan takes together, and chunks that the chunked form does.
inline constexpr std::int64_t kScanTogether = 64;
inline constexpr std::int64_t kChunksTogether = 16;

}  // namespace attnbench::gated_recurrence
