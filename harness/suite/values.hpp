// Values: what a suite says, held against the declaration of the setting or option it is for.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/suite/catalogue.hpp"

namespace attnbench::suite {

/// Bounds of integers that declare none; those of seeds are the type's.
constexpr std::int64_t greatest_size = std::int64_t{1} << 20;   ///< of batch, heads, widths, …
constexpr std::int64_t longest_length = std::int64_t{1} << 26;  ///< tokens, and keys of a window
constexpr std::int64_t most_repeated = std::int64_t{1} << 32;   ///< examples, steps, epochs
/// Numbers in a cell's queries, or in its keys or values.
constexpr std::int64_t most_numbers = std::int64_t{1} << 40;

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
