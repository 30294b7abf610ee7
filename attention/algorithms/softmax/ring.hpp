// What a causal window keeps from token to token: the keys and values that the next query still
// sees, in a ring. And how a mechanism with a window declares and resolves it.
#pragma once

#include "attention/algorithms/softmax/forms.hpp"
#include "attention/mechanism.hpp"

namespace attnbench {

/// Adds to `state` the rings "key" [B, G, slots, D] and "value" [B, G, slots, Dv] of a window that
/// goes `left` back; token p lies in slot p mod slots, and there are left + 1 slots, or `capacity`
/// where that is less.
void add_rings(State& state, const Problem& problem, std::int64_t batch, std::int64_t capacity,
               std::int64_t left, const at::TensorOptions& tensor);

/// The keys, values and mask of `call` are new tokens, the first of them token `state.position`:
/// takes them into the rings, and makes the call see those of the past that its first query still
/// sees, too. The position is left to the caller.
void take_into_rings(State& state, SoftmaxCall& call);

/// The option `window`: 128 keys where it is unsaid.
Option window_option();
/// `options` with the sides of `window` filled in. Throws UsageError for a causal window that sees
/// the future.
Options derive_window(const Options& options, const Problem& problem);

}  // namespace attnbench
