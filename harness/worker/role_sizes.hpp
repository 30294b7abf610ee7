// Sizes of a problem from the arrays of a mechanism's roles, and of the roles from a problem.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attention/mechanism.hpp"
#include "harness/apply/input_arrays.hpp"

namespace attnbench::worker {

/// A problem near enough to learn the mechanism's roles from: sizes of the roles named query, key
/// and value, and of any other where those are missing.
Problem guessed_problem(const apply::InputArrays& given, Pattern pattern, bool gradient);

/// Throws UsageError where roles were given that the mechanism has not, or are missing.
void require_roles(const Mechanism& mechanism, const apply::InputArrays& given);

/// The mechanism's problem with the sizes of the arrays. Throws UsageError, naming two files, where
/// arrays of the same tokens differ in heads or tokens, and where heads or lengths do not go
/// together.
Problem problem_of(const Mechanism& mechanism, const apply::InputArrays& given);

/// head_dim and value_dim, as far as no role is named query, key or value, which decides them.
std::vector<std::int64_t Problem::*> open_widths(const apply::InputArrays& given);

/// [B, heads, tokens, width] as the mechanism wants the role. Tokens of a latent stream are as many
/// as latents_per_head, or as `array` has where there is no such option.
npy::Shape shape_of_role(const Role& role, const Mechanism& mechanism, const npy::Array& array);

/// Parameters, then buffers, by name.
std::vector<std::pair<std::string, at::Tensor>> parameters_of(const Mechanism& mechanism);

}  // namespace attnbench::worker
