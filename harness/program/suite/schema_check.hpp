// Schema check: a suite against suites/form/suite.schema.json.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/program/suite/document.hpp"

namespace attnbench::suite {

/// Gives the start of a message about a pointer, as Document::place does.
using Places = std::function<std::string(const std::string& pointer)>;

/// The schema, which the program holds.
const nlohmann::json& schema();

/// Adds to `problems` what does not fit the schema: for an unknown key the nearest known one, for
/// any other value the `description` that the schema has for its place.
void check_schema(const nlohmann::ordered_json& value, const Places& place, Problems& problems);

/// For messages: the value as JSON where that is short, else what kind of value it is.
std::string shown(const nlohmann::ordered_json& value);

}  // namespace attnbench::suite
