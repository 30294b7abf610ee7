// Tensors as inputs of the references in double, and rows of outputs.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"
#include "attention/reference/reference.hpp"

namespace attnbench::tasks {

using Rows = std::vector<reference::RowIndex>;

/// `count` rows of [B, H, T], or all where there are fewer, spread evenly over t, the first and the
/// last token included; `seed` determines batch, head and the position within each stretch. Those
/// of tokens that are hidden in `real`, [B, T or more] bool, are none; undefined = all are real.
Rows sampled_rows(const Problem& problem, std::int64_t count, std::uint64_t seed,
                  const at::Tensor& real = {});

/// Whether the row's own token is one of the sequence, and no padding of it. Inputs of the pattern
/// cross have no mask of their queries.
bool is_real(const Inputs& inputs, const reference::RowIndex& row);

/// A tensor of up to four dimensions, from any device, as a reference reads it; keeps denormal
/// numbers whatever the mode of this process.
reference::Array to_array(const at::Tensor& tensor);

/// The inputs of a mix and the mechanism's parameters and buffers, in double.
reference::ReferenceInputs to_reference(const Mechanism& mechanism, const Inputs& inputs);

/// Rows of an output [B, H, T, Dv], concatenated, in double.
std::vector<double> rows_of(const at::Tensor& output, const Rows& rows);

/// The rows `rows` of the reference, computed on ATen's number of threads, with denormal numbers.
std::vector<double> reference_rows(const reference::Reference& reference, const Options& options,
                                   const Problem& problem, const reference::ReferenceInputs& inputs,
                                   const Rows& rows);

/// Normal numbers of the standard deviation `scale`, determined by seed and shape; drawn on the
/// device, so that other devices give other numbers.
at::Tensor seeded_normal(at::IntArrayRef shape, std::uint64_t seed, double scale,
                         at::ScalarType type, const std::string& device = "cpu");

}  // namespace attnbench::tasks
