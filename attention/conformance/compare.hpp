// Comparisons that several properties make: with the definition, and with the composite form.
#pragma once

#include <string>
#include <vector>

#include "attention/conformance/subject.hpp"

namespace attnbench::conformance {

/// The definition's arguments for a trial's inputs.
reference::ReferenceInputs definition_inputs(const Trial& trial, const Inputs& inputs);

/// All output rows, or the first, the last and `sampled` others.
std::vector<reference::RowIndex> all_rows(const Problem& problem);
std::vector<reference::RowIndex> sampled_rows(const Problem& problem, int sampled,
                                              std::uint64_t seed);

/// These rows of an output, as the definition returns them.
std::vector<double> rows_of(const at::Tensor& output, const std::vector<reference::RowIndex>& rows);

/// The side that holds NaN or infinity, for a message: "the mechanism holds NaN or infinity in 3 of
/// 40 numbers, the definition in none". Empty where both are finite. `other`: what `want` is of.
std::string not_finite_side(const std::vector<double>& got, const std::vector<double>& want,
                            const std::string& other = "the definition");

/// Compares the output with the definition. Allowed is the dtype's bar or, where the inputs are
/// such that this dtype can do no better, what a naive run in it or rounding of the inputs alone
/// would cost.
void compare_with_definition(Judge& judge, const Subject& subject, const Trial& trial,
                             const Inputs& inputs, const std::vector<reference::RowIndex>& rows);

/// Compares output rows already computed with the definition, by the same rule.
void compare_rows(Judge& judge, const Subject& subject, const Trial& trial, const Inputs& inputs,
                  const std::vector<reference::RowIndex>& rows, const std::string& where,
                  const std::vector<double>& got);

/// Compares output and every gradient with the composite form in double, by the same rule. Numbers
/// smaller than `floor` in root mean square are compared as if they were of that size. Where that
/// form takes no float64, the output alone is compared, with the definition.
void compare_with_composite(Judge& judge, const Subject& subject, const Trial& trial,
                            const Inputs& inputs, double floor = 1e-2);

/// The relative_rms with the size of `want` taken as `floor` at least.
double difference(const at::Tensor& got, const at::Tensor& want, double floor = 1e-2);

}  // namespace attnbench::conformance
