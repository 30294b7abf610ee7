// Status: how a cell ended.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attnbench {

/// Every cell of a plan has one. A disturbed cell keeps its timing, but other processes took the
/// CPU from most of its rounds: it is never ranked and enters no verdict. Trainings are not
/// disturbed: what they learn is the same bit for bit.
enum class Status {
  ok,
  wrong,
  disturbed,
  unsupported,
  skipped,
  out_of_memory,
  timeout,
  crashed,
  error
};

const char* to_string(Status status);
std::optional<Status> status_from(const std::string& word);
/// The words of all statuses, in the order above.
const std::vector<std::string>& status_words();

/// Writes a status as its word. from_json throws SchemaError.
void to_json(nlohmann::json& json, Status status);
void from_json(const nlohmann::json& json, Status& status);
/// The rule for a status; see core/json_schema.hpp.
nlohmann::json schema_of(const Status*);

}  // namespace attnbench
