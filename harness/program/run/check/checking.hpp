// Checking: runs the conformance kit on every implementation, each in a child of the worker.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/protocol.hpp"

namespace attnbench::run {

using Json = nlohmann::json;
class WorkerClient;

/// Sends a request and returns the answer.
using Ask = std::function<Json(const Json& request)>;

/// An Ask that calls `client.request`. The worker's death or refusal is returned as {status:
/// crashed | error, reason} instead of an exception, so that it costs one row.
Ask asking(WorkerClient& client);

/// The user's selection; empty = all.
struct CheckChoices {
  std::vector<std::string> mechanisms;  ///< names or aliases
  std::string implementation;
  std::string pattern;
  std::vector<std::string> dtypes = {"float64", "float32", "bfloat16"};
  std::string device = "cpu";
  std::vector<std::string> options;  ///< NAME=VALUE, for each mechanism; they must be named then
};

struct CheckRow {
  std::string mechanism;  ///< as the user named it: a name or an alias
  std::string entry;      ///< the mechanism's own name
  std::string implementation;
  std::string pattern;
  std::string dtype;
  std::string device = "cpu";
  OptionValues options = {};  ///< those that the user set
};

/// Throws UsageFailure for an unknown word, naming the nearest one, for an option
/// that a named mechanism lacks, and where no row is left.
std::vector<CheckRow> check_rows(const Catalogue& catalogue, const CheckChoices& choices);

/// Runs one child with one thread, as the sizes are small; the kit uses two where they matter.
protocol::CheckedRow check_row(const Ask& ask, const CheckRow& row, double limit_seconds);

}  // namespace attnbench::run
