// Checks of results and records of rounds against the schema of their structs (core/result), and
// against what a schema cannot say; and of answers of children.
//
// A record comes from a process in which a plugin ran, or from a journal that may have been edited.
// Code that joins or draws records relies on their form.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attnbench::result {

using Json = nlohmann::json;

/// The JSON Schema of a result.json, of which .ci/fix writes a copy into python/src/attnbench.
std::string result_schema_text();

/// Throws UsageFailure "FILE: POINTER: expected …, found …" unless `result` has the form of a
/// result.json. Unknown keys are allowed.
void check_form(const Json& result, const std::string& file);

/// Throws what check_form throws for the fault "POINTER: expected …, found …".
[[noreturn]] void refuse_form(const std::string& fault, const std::string& file);

/// The first fault of a result.json, "POINTER: expected …, found …"; empty where there is none.
std::string result_fault(const Json& result);

/// The first fault of the record of one round of a cell, as in result_fault. Its size is bounded,
/// it holds no null (JSON's NaN), and its median is that of its samples. Unknown keys are allowed.
std::string round_fault(const Json& record);

/// The first fault, as in result_fault, of the answer to `request` (check, probe, apply, data,
/// generate, forecast).
std::string answer_fault(const std::string& request, const Json& answer);

}  // namespace attnbench::result
