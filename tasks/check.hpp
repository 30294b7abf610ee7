// Correctness of one mix at its timed size: sampled rows and their gradients against the definition
// in double, beside what a naive run in the same dtype achieves.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tasks/reference_rows.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks {

/// One mix to be checked. All references must outlive the check.
struct MixCase {
  const Entry& entry;
  const Implementation& implementation;
  const reference::Reference& reference;
  Mechanism& mechanism;
  const Inputs& inputs;
  std::uint64_t seed = 0;
};

/// {verdict, reason?, rows, error, max_error, tolerance, naive_error?, rounding_error, reference}.
/// error is the relative root mean square over `rows` (at least 32, unless there are fewer),
/// max_error the greatest difference over the root mean square. The tolerance is that of
/// attention/tolerance.hpp; where inputs are such that the dtype can do no better it follows
/// naive_error, the composite's own, or, when the composite itself is checked or does not fit,
/// rounding_error: how far the definition moves when its inputs are rounded once more.
Json check_values(const MixCase& mix);

/// {error, tolerance, rows, roles: {ROLE: error}}: for each role the derivative of a random
/// function of sampled output rows along a random direction, against the central difference of the
/// definition, relative to the gradient's norm; `error` is the root mean square over roles.
Json check_gradient(const MixCase& mix, std::int64_t rows);

/// The verdict of values and, where there is one, of the gradient, in one section.
Json check_mix(const MixCase& mix, bool with_gradient);

}  // namespace attnbench::tasks
