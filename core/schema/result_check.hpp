// The form of a result.json: what readers rely on, checked once at the door.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attnbench::result {

using Json = nlohmann::json;

/// Throws UsageFailure "FILE: POINTER: expected …" unless `result` has the parts and types that
/// readers rely on. Keys nobody knows are left alone.
void check_form(const Json& result, const std::string& file);

}  // namespace attnbench::result
