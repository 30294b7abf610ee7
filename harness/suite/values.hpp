// Values: what a suite says, held against the declaration of the setting or option it is for.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/suite/catalogue.hpp"

namespace attnbench::suite {

/// `value` in the type of `spec`: an integer written as 1e3 becomes one, an integer for a number is
/// widened. A size expression stays text, to be evaluated cell by cell. Nothing, and the reason in
/// `complaint`, where the value does not fit type, range or choices.
std::optional<Json> typed_value(const OptionSpec& spec, const nlohmann::ordered_json& value,
                                std::string& complaint);

/// Empty, or why the number is out of the range of `spec`.
std::string range_complaint(const OptionSpec& spec, double value);

/// A window of `keys` keys, the token itself included, as {"left", "right"}: all of them before the
/// token when causal, else half on either side, the larger half on the left.
Json window_of(std::int64_t keys, bool causal);

/// "an integer from 1 to 64", "one of forward, backward", …
std::string expectation(const OptionSpec& spec);

}  // namespace attnbench::suite
