// Arrays of files as tensors, and back.
#pragma once

#include <string>

#include "attention/mechanism.hpp"
#include "harness/apply/input_arrays.hpp"

namespace attnbench::worker {

/// Every role's tensor, and the mask as [B, S] of bool. Throws UsageError where the mask holds
/// anything but 0 and 1 or does not fit, and, unless `allow_nan`, where a number is not finite;
/// what stands at masked key tokens is nobody's business, and becomes 0.
Inputs inputs_from(const apply::InputArrays& given, const Mechanism& mechanism, bool allow_nan);

/// The gradient of the output, [B, H, T, Dv]: the array given, or ones. Throws UsageError.
at::Tensor upstream_from(const apply::InputArrays& given, const Problem& problem, bool allow_nan);

/// Copies the parameters given over the mechanism's own. Throws UsageError.
void set_parameters(const apply::InputArrays& given, Mechanism& mechanism, bool allow_nan);

/// Throws EnvironmentFailure where the file cannot be written.
void write_tensor(const std::filesystem::path& file, const at::Tensor& tensor);

}  // namespace attnbench::worker
