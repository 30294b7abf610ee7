// The catalogue: everything that can be measured, as JSON for the program that loads no LibTorch.
#pragma once

#include "attention/registry.hpp"
#include "harness/worker/plugins.hpp"

namespace attnbench::worker {

/// {mechanisms, tasks, plugins, stamp}; see harness/suite/catalogue.hpp.
Json catalogue(const Loaded& loaded);
/// The same, made in a child: a plugin that crashes, throws or hangs over it does not end the
/// worker. Throws Error saying so.
Json catalogue_in_child(const Loaded& loaded, double limit_seconds = 30);
/// The stamp of this build: {attnbench, abi, torch, compiler}.
Json stamp();

/// [{name, shape, fed_by, patterns: [PATTERN…]}] with default options. `shape` is such as
/// "[B, H, T, D]": B batch, H heads, G key heads (a divisor of H), T query tokens, S key tokens, D
/// head_dim, Dv value_dim, L latents_per_head; `fed_by` says what a layer fills it with. Throws
/// what the mechanism throws.
Json roles_of(const Entry& entry);

/// Puts `roles`, or `roles_unknown` with the reason, into each mechanism of `catalogue`. Mechanisms
/// are made in children: one that crashes or hangs costs its own roles.
void add_roles(Json& catalogue, const Loaded& loaded);

}  // namespace attnbench::worker
