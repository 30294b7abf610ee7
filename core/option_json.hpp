// Options as JSON, the form in which the worker declares them and cells hold their values:
// {name, type: integer | number | boolean | text | window, default, meaning, minimum?, maximum?,
// choices?}.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/option.hpp"

namespace attnbench {

using OptionValues = std::map<std::string, OptionValue>;

/// The value of an option from JSON: integers, numbers, booleans and texts as they are; {"left": L,
/// "right": R} is a window. Throws UsageError naming `where` for anything else.
OptionValue value_from(const nlohmann::json& value, const std::string& where);
nlohmann::json to_json(const OptionValue& value);
nlohmann::json to_json(const OptionValues& values);
/// The value for people: texts without quotes, the rest as JSON writes it.
std::string plain_text(const OptionValue& value);

void to_json(nlohmann::json& json, const Option& option);
/// Throws UsageError naming the place.
void from_json(const nlohmann::json& json, Option& option);

/// Whether `number` is finite and within the bounds of `option`.
bool in_range(const Option& option, double number);
/// The range in words, "from 1 to 4096", "at least 1" or "at most 4096"; empty where `option` has
/// no bounds.
std::string range_text(const Option& option);

}  // namespace attnbench
