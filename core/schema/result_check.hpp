// Checks of results, records of rounds and answers of children against
// core/schema/result.schema.json, and against what a schema cannot say.
//
// A record comes from a process in which a plugin ran, or from a journal that may have been edited.
// Code that joins or draws records relies on their form.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attnbench::schema {

using Json = nlohmann::json;

/// The text of core/schema/result.schema.json, embedded by the build.
extern const char* const result_schema_text;

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

/// The first fault of the header of a journal, as in result_fault.
std::string header_fault(const Json& header);

/// The first fault, as in result_fault, of the answer to `request` (run, check, probe, apply, data,
/// generate, forecast).
std::string answer_fault(const std::string& request, const Json& answer);

}  // namespace attnbench::schema
