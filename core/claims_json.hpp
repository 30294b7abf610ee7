// The JSON of what a mechanism says of itself. Plugins need no JSON for it.
#pragma once

#include "core/claims.hpp"
#include "core/json_object.hpp"

namespace attnbench {

/// An object of the numbers that are known, but for `backward_flops`, which is applied before.
void to_json(nlohmann::json& json, const Cost& cost);
/// What is missing is not known. Throws SchemaError.
void from_json(const nlohmann::json& json, Cost& cost);

/// An object of the exponents that are claimed, and `from_length` where it is not 0.
void to_json(nlohmann::json& json, const Growth& growth);
/// What is missing is not claimed. Throws SchemaError.
void from_json(const nlohmann::json& json, Growth& growth);

ATTNBENCH_JSON(Claims);
ATTNBENCH_JSON(Alias);
ATTNBENCH_JSON(Departure);

}  // namespace attnbench
