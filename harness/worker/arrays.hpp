// Input arrays of `apply` as tensors: their numbers, and results written back.
#pragma once

#include <filesystem>

#include "attention/shape_inference.hpp"
#include "core/arrays/input_arrays.hpp"

namespace attnbench::worker {

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
