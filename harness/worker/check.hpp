// Answers the protocol's `check`: the conformance kit, run in a child of the worker.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "attention/registry.hpp"

namespace attnbench::worker {

using Json = nlohmann::json;

/// `request`: {mechanism, implementation, pattern, dtypes: [DTYPE…], device?}, the mechanism by name
/// or alias; the process has taken the device. Returns {mechanism, implementation, pattern, status, reason?, properties}:
/// status  ok; wrong where a property is broken (the first one is the reason); unsupported where
///         the implementation does nothing of this pattern in any of the dtypes
/// properties  [{name, dtype, status, reason?, error?, tolerance?}], what is not finite left out
/// Throws UsageError for names that are not known.
Json check_in_child(const Registry& registry, const Json& request);

}  // namespace attnbench::worker
