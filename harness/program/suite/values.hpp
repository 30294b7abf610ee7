// Values of settings and options, checked against their declarations.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/option.hpp"
#include "core/sizes.hpp"

namespace attnbench::suite {

/// The bound of what is repeated (examples, steps, epochs) where an integer declares none; that of
/// sizes is in core/sizes.hpp, that of seeds the type's.
constexpr std::int64_t max_repeated = std::int64_t{1} << 32;
/// Elements of a cell's queries, or of its keys or values.
constexpr std::int64_t max_numbers = std::int64_t{1} << 40;

/// The value in the type of `option`: 1e3 becomes an integer, an integer becomes a number where one
/// is declared. Size expressions stay text; they are evaluated for each cell. Nothing, with the
/// reason in `complaint`, where the value does not fit type, range or choices.
std::optional<nlohmann::json> typed_value(const Option& option, const nlohmann::ordered_json& value,
                                          std::string& complaint);

/// Why the number is out of the range of `option`, or greater than integers without a maximum may
/// be here; empty = it is not.
std::string range_complaint(const Option& option, double value);

/// The expected values in words: "an integer from 1 to 64", "one of forward, backward", …
std::string expectation(const Option& declared);

}  // namespace attnbench::suite
