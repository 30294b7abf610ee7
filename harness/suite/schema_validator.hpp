// The only place that sees valijson, whose headers cost seconds to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attnbench::suite {

/// JSON pointers of the values in `value` that break `schema` (JSON Schema draft 7), the innermost
/// ones only: a list with a bad item fails as well, which says nothing new.
std::vector<std::string> failing_pointers(const nlohmann::json& schema,
                                          const nlohmann::json& value);

}  // namespace attnbench::suite
