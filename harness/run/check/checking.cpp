#include "harness/run/check/checking.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "core/protocol.hpp"
#include "core/text/spelling.hpp"
#include "harness/run/worker/worker_client.hpp"

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
  throw UsageFailure("there is no " + what + " \"" + word +
                     "\": " + suite::suggestion(word, known));
}

std::vector<std::string> all_names(const suite::Catalogue& catalogue) {
  std::vector<std::string> names;
  for (const auto& [name, spec] : catalogue.mechanisms) names.push_back(name);
  return names;
}

/// Rows of one name; `implementation` empty = each of them.
void append_rows(const suite::MechanismSpec& spec, const std::string& asked,
                 const std::string& implementation, const CheckChoices& choices,
                 std::vector<CheckRow>& rows) {
  for (const std::string& each : spec.implementations) {
    if (!implementation.empty() && each != implementation) continue;
    if (!choices.implementation.empty() && each != choices.implementation) continue;
    for (const std::string& pattern : spec.patterns) {
      if (!choices.pattern.empty() && pattern != choices.pattern) continue;
      for (const std::string& dtype : choices.dtypes) {
        rows.push_back({asked, spec.name, each, pattern, dtype, choices.device});
      }
    }
  }
}

void refuse_unknown(const suite::Catalogue& catalogue, const CheckChoices& choices) {
  std::vector<std::string> names = all_names(catalogue);
  std::vector<std::string> implementations;
  for (const auto& [name, spec] : catalogue.mechanisms) {
    for (const auto& each : spec.implementations) {
      if (!among(each, implementations)) implementations.push_back(each);
    }
  }
  for (const auto& [name, alias] : catalogue.aliases) names.push_back(name);
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

std::vector<CheckRow> check_rows(const suite::Catalogue& catalogue, const CheckChoices& choices) {
  refuse_unknown(catalogue, choices);
  std::vector<CheckRow> rows;
  const auto names = choices.mechanisms.empty() ? all_names(catalogue) : choices.mechanisms;
  for (const std::string& name : names) {
    const auto alias = catalogue.aliases.find(name);
    if (alias == catalogue.aliases.end()) {
      append_rows(catalogue.mechanisms.at(name), name, "", choices, rows);
      continue;
    }
    const std::string& chosen = alias->second.implementation;
    append_rows(catalogue.mechanisms.at(alias->second.mechanism), name,
                chosen == "auto" ? "" : chosen, choices, rows);
  }
  if (rows.empty()) {
    throw UsageFailure(
        "nothing to check: no mechanism named has that implementation and pattern; "
        "attnbench list shows what there is");
  }
  return rows;
}

Json check_row(const Ask& ask, const CheckRow& row, double limit_seconds) {
  protocol::Check request;
  request.mechanism = row.mechanism;
  request.implementation = row.implementation;
  request.pattern = row.pattern;
  request.dtypes = {row.dtype};
  request.device = row.device;
  request.threads = 1;
  request.limits.seconds = limit_seconds;
  Json answer = ask(request);
  answer.erase("type");
  answer["mechanism"] = row.mechanism;
  answer["implementation"] = row.implementation;
  answer["pattern"] = row.pattern;
  answer["dtype"] = row.dtype;
  if (!answer.contains("properties")) answer["properties"] = Json::array();
  for (const char* status : {"held", "broken", "not_applicable"}) {
    const Json& properties = answer["properties"];
    answer[status] = std::count_if(properties.begin(), properties.end(),
                                   [&](const Json& each) { return each.at("status") == status; });
  }
  return answer;
}

bool failed(const Json& checked) {
  const std::string status = checked.value("status", "error");
  return status != "ok" && status != "unsupported";
}

}  // namespace attnbench::run
