// The roles of mechanisms, for people: what arrays a mechanism mixes, and how their sizes follow
// from those of the problem. Nothing but a mechanism that was made says that.
#pragma once

#include "harness/worker/child.hpp"
#include "harness/worker/plugins.hpp"

namespace attnbench::worker {

/// [{name, shape, fed_by, patterns: [PATTERN…]}] with default options. `shape` is such as
/// "[B, H, T, D]": B batch, H heads, G key heads (a divisor of H), T query tokens, S key tokens, D
/// head_dim, Dv value_dim, L latents_per_head; `fed_by` says what a layer fills it with. Throws
/// whatever the mechanism throws.
Json roles_of(const Entry& entry);

/// Puts `roles`, or `roles_unknown` with the reason, into each mechanism of `catalogue`. Mechanisms
/// are made in children: one that crashes or hangs costs its own roles.
void add_roles(Json& catalogue, const Loaded& loaded, int private_descriptor);

}  // namespace attnbench::worker
