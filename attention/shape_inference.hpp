// Shape inference: the problem and the options that follow from input arrays.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/mechanism.hpp"
#include "core/arrays/input_arrays.hpp"

namespace attnbench {

/// A mechanism whose roles and parameters have the shapes of the input arrays.
struct Inferred {
  Problem problem;
  Options options;  ///< resolved and derived
  std::shared_ptr<Mechanism> mechanism;
};

/// Parameters, then buffers, by name.
std::vector<std::pair<std::string, at::Tensor>> parameters_of(const Mechanism& mechanism);

/// Sizes come from the arrays of the roles. An integer option that is not in `said` takes the
/// number that makes a role's or a parameter's shape fit, such as latents_per_head from the width
/// of query_logits. One that is in `said` stays, and an array that contradicts it is refused.
/// Throws UsageError (roles or parameters that are missing, unknown or of another shape, sizes that
/// contradict each other) and UnsupportedError.
Inferred infer_shapes(const Entry& entry, const std::map<std::string, OptionValue>& said,
                      Pattern pattern, bool gradient, const arrays::InputArrays& arrays);

}  // namespace attnbench
