// Sizes: the settings shared by the tasks that put a mechanism to random inputs, and the problem
// that they describe.
#pragma once

#include <vector>

#include "core/option.hpp"
#include "core/problem.hpp"

namespace attnbench::tasks {

/// batch, heads, kv_heads, width, head_dim, value_dim, dtype, input_scale. 0 means "derived".
std::vector<Option> size_settings();

/// The problem of `settings`, which hold those above and `length`; also `key_length` and `pattern`
/// where the task has them (otherwise: as many keys as queries, causal). Sizes of 0 are derived as
/// core/sizes.hpp says.
/// Throws UsageError where sizes contradict each other, saying which.
Problem problem_from(const Options& settings);

}  // namespace attnbench::tasks
