// The selective scan, S6: a diagonal state space whose steps, inputs and reads each token says, as
// Mamba has it; with constants in their place it is S4D.
//
//   h_t,n = exp(-e^(a_n) delta_t) h_{t-1},n + delta_t x_t B_t,n,  delta_t = softplus(z_t + bias),
//   y_t = sum_n C_t,n h_t,n + skip x_t,
// for each channel, with N numbers of state. Gu and Dao 2023 (Mamba, arXiv:2312.00752), algorithm
// 2; with constants, there algorithm 1: Gu et al. 2022 (S4D, arXiv:2206.11893), whose numbers may
// be complex, each beside its conjugate: -e^a + i turn for -e^a, and twice the real part of what is
// read. B is multiplied by delta, as in Mamba's code, where its eq. 4 holds the input for the step.
//
// The decays of a token are exponentials of what is not positive, and are only multiplied: any step
// is right. 16-bit inputs are computed in float32.
#pragma once

#include <cstdint>

#include "attention/torch/torch.hpp"
#include "core/claims.hpp"

namespace attnbench::selective_scan {

/// One call, for H heads of D channels. Heads share reads and inputs in G groups of neighbours.
struct Call {
  at::Tensor value;  ///< x [B, H, T, D]
  /// z [B, H, T, D] or, with a step_weight, [B, G, T, R]; undefined = 0: delta is a constant.
  at::Tensor step;
  at::Tensor input;        ///< B [B, G, T, N]; undefined = input_weight
  at::Tensor read;         ///< C [B, G, T, N]; undefined = read_weight
  at::Tensor a_log;        ///< a [H, N, D]
  at::Tensor bias;         ///< [H, D]
  at::Tensor skip;         ///< [H, D]
  at::Tensor step_weight;  ///< [H, R, D], what makes z of R numbers; undefined = z is given
  at::Tensor input_weight, read_weight;  ///< B and C of each channel [H, N, D], where constant
  /// Of constants, what exponents and C have of i, [H, N, D]; undefined = real numbers.
  at::Tensor turn, read_turn;
  at::Tensor key_mask;  ///< [B, T] bool, true at real tokens; padding leaves the state unchanged

  /// G; 1 where constants leave nothing to share.
  std::int64_t groups() const { return input.defined() ? input.size(1) : 1; }
};

/// The state [B, G, N, H / G D] before the first token, in float32 if `like` has 16 bits; of
/// complex numbers [B, G, N, H / G D, 2]. With constants it holds B C h. `a_log` as in Call.
at::Tensor empty_state(std::int64_t batch, std::int64_t groups, const at::Tensor& a_log,
                       bool complex, const at::TensorOptions& like);

/// The forms: y [B, H, T, D] in the dtype of `value`, 0 at padding. With a defined `state` they
/// continue from it, advance it in place and record no gradients.

/// The states of all tokens at once in memory, one after the other. Gradients by autograd.
at::Tensor materialised(const Call& call, at::Tensor state = {});

/// The states of `chunk` tokens at once: bounded workspace for any T. The gradient keeps the inputs
/// and the state before each chunk, which it computes again.
at::Tensor chunked(const Call& call, std::int64_t chunk, at::Tensor state = {});

/// In one CPU kernel, of what tokens say; its gradients are a kernel, too.
at::Tensor fused(const Call& call, at::Tensor state = {});

// ---- costs

struct Sizes {
  double batch = 1, length = 1;
  double groups = 1, channels = 1;  ///< of all heads, with the batch
  double rows = 1;                  ///< numbers of a channel's state
  double rank = 0;                  ///< numbers that steps are made of; 0: each channel has its own
  double bytes = 4;                 ///< of one number of the inputs
  bool selective = true, complex = false;
  double wide() const { return bytes > 4 ? bytes : 4; }
  /// Bytes of one state of all channels.
  double state_bytes() const { return channels * rows * (complex ? 2 : 1) * wide(); }
};

Cost materialised_cost(const Sizes& sizes);
Cost chunked_cost(const Sizes& sizes, double chunk);
Cost fused_cost(const Sizes& sizes);

}  // namespace attnbench::selective_scan
