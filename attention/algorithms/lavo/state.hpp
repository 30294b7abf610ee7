// LAVO as its tokens come: the memory, the sums of the window and the rings of what it still sees,
// in a State.
#pragma once

#include "attention/algorithms/lavo/pieces.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::orthogonal_memory {

/// Instead of a number of tokens that are taken together: in kernels.
constexpr std::int64_t in_kernels = -1;

/// Before the first token: "memory", "count" and, where it is dissected, "window_sum" and
/// "window_count", of the type of `bases` [H, r, D] (float32 where the inputs have 16 bits). The
/// rings of the window are the caller's to add.
State empty_state(std::int64_t batch, const at::Tensor& bases, bool dissected);

/// The outputs of `call`'s tokens, which come after those that `state` has taken in; takes them in.
/// `most` as in causal(), or in_kernels. Nothing is recorded for gradients.
at::Tensor continued(const Call& call, State& state, std::int64_t most);

}  // namespace attnbench::orthogonal_memory
