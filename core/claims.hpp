// What a mechanism says of itself before anything runs: cost, growth, properties, names. The
// mechanism makes it, the protocol and the result carry it, figures and verdicts read it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/option.hpp"

namespace attnbench {

/// The cost of one forward mix of the whole problem (all batches and heads). A number that is not
/// finite is not known.
struct Cost {
  double model_flops = 0;  ///< of the recurrent or algebraic minimum: equal for all implementations
  double executed_flops = 0;  ///< of this implementation
  double minimal_bytes = 0;   ///< inputs read once, outputs written once
  double exponentials = 0;
  double workspace_bytes = 0;   ///< predicted peak beyond inputs and output, forward
  double saved_bytes = 0;       ///< kept for backward, beyond inputs and output
  double state_bytes = 0;       ///< of one decoding state after `length` tokens
  double backward_flops = 2.5;  ///< of the backward pass alone, as a factor on the forward FLOPs
};
/// A number of a cost; 0 where it is not known.
double known_or_zero(double number);

/// Asymptotic growth exponents of one implementation's forward pass in T (tokens), L (latents; 0 if
/// there are none) and D (head_dim). Exponents in T are checked from both sides, those in L and D
/// as upper bounds: see reports/tables/growth.hpp. One that is not finite is not claimed.
struct Growth {
  double time_in_length = 1;
  double workspace_in_length = 1;
  double time_in_latents = 0;
  double workspace_in_latents = 0;
  /// At fixed T and L; a size that follows head_dim (the features of linear) grows with it.
  double time_in_head_dim = 1;
  std::optional<double> workspace_in_head_dim = {};  ///< not claimed by default
  /// Below this many tokens another term hides the exponents in T.
  std::int64_t from_length = 0;
};
/// The exponent of that name; nothing where it is not claimed.
std::optional<double> claimed_exponent(const Growth& growth, const std::string& name);

/// Properties that a mechanism claims; the conformance kit checks each claim.
struct Claims {
  bool rows_sum_to_one = true;          ///< y(v + c) = y(v) + c
  bool linear_in_value = true;          ///< y(a v + b v') = a y(v) + b y(v')
  bool permutation_equivariant = true;  ///< bidirectional, without positions
  bool last_row_agrees = true;          ///< causal row T-1 equals bidirectional row T-1
  bool heads_independent = true;        ///< no head reads another (Luna's unpacking mixes them)
};

/// A name for a mechanism with a chosen implementation and options.
struct Alias {
  std::string name;
  std::string mechanism;       ///< not in JSON, where it stands in its mechanism
  std::string implementation;  ///< or "auto"
  std::map<std::string, OptionValue> options;
  std::string title;
};

/// A difference from the published code or paper.
struct Departure {
  std::string what;  ///< the difference, naming the publication: "no 1/sqrt(D) in the paper"
  std::string how;   ///< how to get the published form, or why it is not available
};

}  // namespace attnbench
