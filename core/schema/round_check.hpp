// The form of a round's record, and of the other answers of a child: what readers rely on.
//
// A record comes out of a process in which a plugin ran, or out of a journal that anybody may have
// edited. One that is not of this form is no measurement, and would end whoever joins or draws it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attnbench::result {

using Json = nlohmann::json;

/// What is wrong with the record of one round of a cell, such as "measured.timing.forward
/// .median_seconds: expected a positive number, found -5"; empty where nothing is. Held to its form
/// are status and texts, all that is measured by its kind, and a median by its own samples.
/// Sections and keys that nobody knows are left alone, but hold no null (JSON's NaN) and end
/// somewhere.
std::string round_fault(const Json& record);

/// The same for what is joined from it: the cell of `record` alone, with what was planned. Catches
/// what sections of known names lack for those who join, tabulate and draw them.
std::string joined_fault(const Json& cell, const Json& forecast, const Json& record);

/// The same for the answer to `request` (run, check, probe, apply, data, forecast).
std::string answer_fault(const std::string& request, const Json& answer);

}  // namespace attnbench::result
