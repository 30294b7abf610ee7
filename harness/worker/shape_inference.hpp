// Fitting: the problem and the options that arrays from outside stand for.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "attention/mechanism.hpp"
#include "harness/apply/input_arrays.hpp"

namespace attnbench::worker {

/// A mechanism whose roles and parameters have the shapes of the arrays given.
struct Fitted {
  Problem problem;
  Options options;  ///< resolved and derived
  std::shared_ptr<Mechanism> mechanism;
};

/// Sizes come from the arrays of the roles. An integer option that nobody said takes the number
/// that makes a role's or a parameter's shape fit (latents_per_head from the width of query_logits,
/// say); one that was said stands, and an array that contradicts it is refused.
/// Throws UsageError (roles or parameters that are missing, unknown or of another shape, sizes that
/// do not go together) and UnsupportedError.
Fitted fit(const Entry& entry, const std::map<std::string, OptionValue>& said, Pattern pattern,
           bool gradient, const apply::InputArrays& given);

}  // namespace attnbench::worker
