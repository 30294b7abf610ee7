// Form: what suites/form/suite.schema.json says a suite must look like.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/suite/problems.hpp"

namespace attnbench::suite {

/// Tells the start of a message about a pointer, as Document::place does.
using Places = std::function<std::string(const std::string& pointer)>;

/// The schema, from the program itself.
const nlohmann::json& schema();

/// Holds `value` against the schema and files what does not fit. An unknown key gets the nearest
/// known one; any other misfit gets the `description` that the schema has for its place.
void check_form(const nlohmann::ordered_json& value, const Places& place, Problems& problems);

/// For messages: the value as JSON where that is short, else what kind of value it is.
std::string shown(const nlohmann::ordered_json& value);

}  // namespace attnbench::suite
