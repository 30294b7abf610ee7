// MixCase: one mix to check, whatever was timed of it: a whole sequence, or the tokens after a
// past.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/reference_rows.hpp"
#include "tasks/stack.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks {

/// All references must outlive the case. Outputs and their rows are those of the tokens after the
/// past, counted from the first of them; inputs and problem are those of all.
struct MixCase {
  const Entry& entry;
  const Implementation& implementation;
  const reference::Reference& reference;
  Mechanism& mechanism;
  const Inputs& inputs;
  std::uint64_t seed = 0;
  std::int64_t past = 0;  ///< tokens read into a state, from which the mix continues; 0 = no state

  /// The mechanism's, in the dtype of the inputs, which may be narrower than its parameters.
  Problem problem() const;

  /// The output by an implementation, `this->implementation` or another, on `given` inputs.
  at::Tensor output_of(const Implementation& one, const Inputs& given) const;
  /// What that costs.
  Cost cost_of(const Implementation& one) const;

  /// The mask [B, T] of the tokens that have rows; undefined = all do.
  at::Tensor real_tokens() const;
  /// `output`, with zeros for tokens without a row. May be undefined.
  at::Tensor with_real_rows(const at::Tensor& output) const;
  /// sampled_rows of the outputs for the first tokens of the sequences, as many as `of` has.
  Rows rows(const Problem& of, std::int64_t count, std::uint64_t row_seed) const;

  /// The inputs of the definition for `of`; with a mask no longer than its tokens.
  reference::ReferenceInputs exact_inputs(const Problem& of) const;
  /// The definition of these rows, for `of` and on `exact` inputs.
  std::vector<double> defined_rows(const Problem& of, const reference::ReferenceInputs& exact,
                                   Rows rows) const;
};

/// The case of the mix of a block, without a past. Refers to the arguments.
MixCase case_of(const Registry& registry, const BlockMechanism& of, Mechanism& mechanism,
                const Inputs& inputs, std::uint64_t seed);

}  // namespace attnbench::tasks
