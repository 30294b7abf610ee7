// From tensors to the definitions in double and back: rows of an output against the reference.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"
#include "attention/reference/reference.hpp"

namespace attnbench::tasks {

using Rows = std::vector<reference::RowIndex>;

/// `count` rows of [B, H, T], or all where there are fewer, spread evenly over t with the first and
/// the last token among them; batch and head, and the place within each stretch, follow `seed`.
Rows sampled_rows(const Problem& problem, std::int64_t count, std::uint64_t seed);

/// A tensor of up to four dimensions, from whatever device, as a reference reads it; denormal
/// numbers are kept whatever this process does with them.
reference::Array to_array(const at::Tensor& tensor);

/// The very inputs of a mix, and the mechanism's parameters and buffers, in double.
reference::ReferenceInputs to_reference(const Mechanism& mechanism, const Inputs& inputs);

/// The rows of an output [B, H, T, Dv], one after the other, in double.
std::vector<double> rows_of(const at::Tensor& output, const Rows& rows);

/// The reference's rows in the same order, computed on ATen's number of threads, with
/// denormal numbers.
std::vector<double> reference_rows(const reference::Reference& reference, const Options& options,
                                   const Problem& problem, const reference::ReferenceInputs& inputs,
                                   const Rows& rows);

/// Normal numbers of the standard deviation `scale` in the dtype asked for, decided by seed and
/// shape alone; on a device of its own drawn there, which gives other numbers.
at::Tensor seeded_normal(at::IntArrayRef shape, std::uint64_t seed, double scale,
                         at::ScalarType type, const std::string& device = "cpu");

}  // namespace attnbench::tasks
