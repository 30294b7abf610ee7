// What `attnbench check` found, as a page to attach to a paper or a pull request.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attnbench::reports {

using Json = nlohmann::json;

/// `document`: {command, date, build, stamp, machine, mechanisms: [as in the catalogue], checks:
/// [{mechanism, implementation, pattern, dtype, status, reason?, held, broken, not_applicable,
/// properties: [{name, status, reason?, error?, tolerance?}]}], growth: [{mechanism,
/// implementation, quantity, claimed, measured?, tolerance, verdict, reason?}]}, `machine` with
/// {devices: {WORD: card}} where the checks ran on one. What is absent is left out.
std::string check_markdown(const Json& document);

/// Of a row of checks the property that used up most of its tolerance; null where none has one.
const Json* closest_to_tolerance(const Json& row);

}  // namespace attnbench::reports
