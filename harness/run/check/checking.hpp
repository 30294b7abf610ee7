// Checking: the conformance kit put to every implementation there is, one child of the worker each.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/suite/catalogue.hpp"

namespace attnbench::run {

using Json = nlohmann::json;
class WorkerClient;

/// Sends a request and returns the answer.
using Ask = std::function<Json(const Json& request)>;

/// `client.request`; the worker's death and its refusal come back as {status: crashed | error,
/// reason} instead of an exception, so that they cost one row.
Ask asking(WorkerClient& client);

/// What the user chose; empty = all there is.
struct CheckChoices {
  std::vector<std::string> mechanisms;  ///< names or aliases
  std::string implementation;
  std::string pattern;
  std::vector<std::string> dtypes = {"float64", "float32", "bfloat16"};
  std::string device = "cpu";
};

struct CheckRow {
  std::string mechanism;  ///< as it was asked for: a name or an alias
  std::string entry;      ///< the mechanism's own name
  std::string implementation;
  std::string pattern;
  std::string dtype;
  std::string device = "cpu";
};

/// Throws UsageFailure, naming the nearest word, for what is not known, and where nothing is left.
std::vector<CheckRow> check_rows(const suite::Catalogue& catalogue, const CheckChoices& choices);

/// One child with one thread, as the sizes are small; the kit takes two where they matter.
/// {mechanism, implementation, pattern, dtype, status, reason?, properties, held, broken,
/// not_applicable}. status: ok, wrong, unsupported, or how the child ended.
Json check_row(const Ask& ask, const CheckRow& row, double limit_seconds);

/// Whether the row is a failure: broken, crashed, hung. What is unsupported is none.
bool failed(const Json& checked);

}  // namespace attnbench::run
