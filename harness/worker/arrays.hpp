// Input arrays of `apply` as tensors: the sizes that they imply, the shapes that a mechanism wants
// of them, their numbers, and results written back.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "attention/mechanism.hpp"
#include "core/arrays/input_arrays.hpp"

namespace attnbench::worker {

/// A problem near enough to learn the mechanism's roles from: sizes of the roles named query, key
/// and value, and of any other where those are missing.
Problem guessed_problem(const arrays::InputArrays& arrays, Pattern pattern, bool gradient);

/// Throws UsageError where a role is missing, or an array has a role that the mechanism lacks.
void require_roles(const Mechanism& mechanism, const arrays::InputArrays& arrays);

/// The mechanism's problem with the sizes of the arrays. Throws UsageError, naming two files, where
/// arrays of the same tokens differ in heads or tokens, and where heads or lengths do not go
/// together.
Problem problem_of(const Mechanism& mechanism, const arrays::InputArrays& arrays);

/// The widths head_dim and value_dim, as far as no role is named query, key or value, which decides
/// them.
std::vector<std::int64_t Problem::*> open_widths(const arrays::InputArrays& arrays);

/// The shape [B, heads, tokens, width] that the mechanism wants of the role. Tokens of a latent
/// stream are as many as latents_per_head, or as `array` has where there is no such option.
arrays::Shape shape_of_role(const Role& role, const Mechanism& mechanism,
                            const arrays::ArrayFile& array);

/// Parameters, then buffers, by name.
std::vector<std::pair<std::string, at::Tensor>> parameters_of(const Mechanism& mechanism);

/// Every role's tensor, and the mask as [B, S] of bool. Throws UsageError where the mask holds
/// anything but 0 and 1 or does not fit, and, unless `allow_nan`, where a number is not finite;
/// numbers at masked key tokens may be anything, and become 0.
Inputs inputs_from(const arrays::InputArrays& arrays, const Mechanism& mechanism, bool allow_nan);

/// The gradient of the output, [B, H, T, Dv]: the array given, or ones. Throws UsageError.
at::Tensor upstream_from(const arrays::InputArrays& arrays, const Problem& problem, bool allow_nan);

/// Copies the parameters given over the mechanism's own. Throws UsageError.
void set_parameters(const arrays::InputArrays& arrays, Mechanism& mechanism, bool allow_nan);

/// Throws EnvironmentFailure where the file cannot be written.
void write_tensor(const std::filesystem::path& file, const at::Tensor& tensor);

}  // namespace attnbench::worker
