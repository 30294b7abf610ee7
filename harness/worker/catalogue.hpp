// The catalogue: everything that can be measured, for the program that loads no LibTorch.
#pragma once

#include "attention/registry.hpp"
#include "core/catalogue.hpp"
#include "harness/worker/plugins.hpp"

namespace attnbench::worker {

/// Without roles.
Catalogue catalogue(const Loaded& loaded);
/// The same, made in a child: a plugin that crashes, throws or hangs over it does not end the
/// worker. Throws Error saying so.
Catalogue catalogue_in_child(const Loaded& loaded, double limit_seconds = 30);
/// The stamp of this build.
Stamp stamp();

/// With default options. Throws what the mechanism throws.
std::vector<RoleSpec> roles_of(const Entry& entry);

/// Puts `roles`, or `roles_unknown` with the reason, into each mechanism of `catalogue`. Mechanisms
/// are made in children: one that crashes or hangs costs its own roles.
void add_roles(Catalogue& catalogue, const Loaded& loaded);

}  // namespace attnbench::worker
