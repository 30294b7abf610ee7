// Safetensors, as far as traces need it: lists of whole numbers out of a file of named tensors.
//
// Format (https://huggingface.co/docs/safetensors): eight bytes with the size of a JSON header, the
// header {NAME: {dtype, shape, data_offsets}…}, then the numbers, little-endian.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace attnbench::trace {

/// The numbers of the tensor `name`: one dimension of I32 or I64. Throws UsageFailure, with the
/// file, what was found and what was expected, for everything else.
std::vector<std::int64_t> whole_numbers(const std::filesystem::path& file, const std::string& name);

}  // namespace attnbench::trace
