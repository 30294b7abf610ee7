#include "harness/program/run/check/checking.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/run/client/worker_client.hpp"
#include "harness/program/suite/overrides.hpp"

namespace attnbench::run {
namespace {

const std::vector<std::string>& known_dtypes() {
  static const std::vector<std::string> words = {"float64", "float32", "bfloat16", "float16"};
  return words;
}

bool among(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void require_known(const std::string& what, const std::string& word,
                   const std::vector<std::string>& known) {
  if (among(word, known)) return;
  throw UsageFailure("there is no " + what + " \"" + word + "\": " + text::suggestion(word, known));
}

/// Rows of one name; `implementation` empty = each of them.
void append_rows(const MechanismSpec& spec, const std::string& asked,
                 const std::string& implementation, const CheckChoices& choices,
                 std::vector<CheckRow>& rows) {
  for (const std::string& each : spec.implementation_names()) {
    if (!implementation.empty() && each != implementation) continue;
    if (!choices.implementation.empty() && each != choices.implementation) continue;
    for (const std::string& pattern : spec.patterns) {
      if (!choices.pattern.empty() && pattern != choices.pattern) continue;
      OptionValues options;
      for (const std::string& text : choices.options) {
        const suite::SetFlag flag = suite::parse_set_flag(text);
        options[flag.key] = suite::option_value(spec, flag, pattern == "causal");
      }
      for (const std::string& dtype : choices.dtypes) {
        rows.push_back({asked, spec.name, each, pattern, dtype, choices.device, options});
      }
    }
  }
}

void refuse_unknown(const Catalogue& catalogue, const CheckChoices& choices) {
  const std::vector<std::string> names = catalogue.names();
  std::vector<std::string> implementations;
  for (const MechanismSpec& spec : catalogue.mechanisms) {
    for (const auto& each : spec.implementation_names()) {
      if (!among(each, implementations)) implementations.push_back(each);
    }
  }
  for (const auto& name : choices.mechanisms) require_known("mechanism", name, names);
  if (!choices.implementation.empty()) {
    require_known("implementation", choices.implementation, implementations);
  }
  if (!choices.pattern.empty()) {
    require_known("pattern", choices.pattern, {"bidirectional", "causal", "cross"});
  }
  for (const auto& dtype : choices.dtypes) require_known("dtype", dtype, known_dtypes());
}

}  // namespace

Ask asking(WorkerClient& client) {
  return [&client](const Json& request) -> Json {
    try {
      return client.request(request);
    } catch (const WorkerDied& died) {
      return {{"status", "crashed"}, {"reason", died.what()}};
    } catch (const WorkerRefused& refused) {
      return {{"status", "error"}, {"reason", refused.what()}};
    }
  };
}

std::vector<CheckRow> check_rows(const Catalogue& catalogue, const CheckChoices& choices) {
  refuse_unknown(catalogue, choices);
  if (!choices.options.empty() && choices.mechanisms.empty()) {
    throw UsageFailure("--set " + choices.options.front() +
                       ": name the mechanisms that have this option");
  }
  std::vector<CheckRow> rows;
  std::vector<std::string> names = choices.mechanisms;
  if (names.empty()) {
    for (const MechanismSpec& spec : catalogue.mechanisms) names.push_back(spec.name);
  }
  for (const std::string& name : names) {
    const NamedMechanism named = *catalogue.find(name);
    const std::string chosen = named.implementation();
    append_rows(*named.mechanism, name, chosen == "auto" ? "" : chosen, choices, rows);
  }
  if (rows.empty()) {
    throw UsageFailure(
        "nothing to check: no mechanism named has that implementation and pattern; "
        "attnbench list shows what there is");
  }
  return rows;
}

protocol::CheckedRow check_row(const Ask& ask, const CheckRow& row, double limit_seconds) {
  protocol::Check request;
  request.mechanism = row.mechanism;
  request.implementation = row.implementation;
  request.pattern = row.pattern;
  request.dtypes = {row.dtype};
  request.device = row.device;
  request.options = row.options;
  request.threads = 1;
  request.limits.seconds = limit_seconds;
  protocol::CheckedRow checked{ask(request).get<protocol::CheckAnswer>(), row.dtype};
  checked.mechanism = row.mechanism;
  checked.implementation = row.implementation;
  checked.pattern = row.pattern;
  return checked;
}

}  // namespace attnbench::run
