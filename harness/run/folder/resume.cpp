#include "harness/run/folder/resume.hpp"

#include <utility>

#include "core/result/record.hpp"
#include "harness/run/folder/combine.hpp"
#include "harness/run/folder/disturbance.hpp"

namespace attnbench::run {
namespace {

/// Whether a device of the same name was another card, or had another driver.
bool other_device(const Json& then, const Json& now) {
  const Json nothing = Json::object();
  const Json& before = then.contains("devices") ? then["devices"] : nothing;
  for (const auto& [word, card] :
       now.contains("devices") ? now["devices"].items() : nothing.items()) {
    if (before.contains(word) && before[word] != card) return true;
  }
  return false;
}

/// Why records made under `then` do not hold under `now`; empty if they do.
std::string difference(const Json& then, const Json& now) {
  const std::pair<const char*, const char*> sentences[] = {
      {"binary", "the worker or a plugin was built anew since"},
      {"machine", "it was measured on another machine"},
      {"threads", "it was measured with another number of threads"},
      {"seed", "it was measured with another seed"},
      {"measure", "it was sampled by another rule"},
      {"blas_core", "its matrix products came from other kernels of OpenBLAS"}};
  for (const auto& [key, sentence] : sentences) {
    if (then.value(key, Json()) != now.value(key, Json())) return sentence;
  }
  return other_device(then, now) ? "it was measured on another device, or with another driver" : "";
}

/// By the result's rule, since each round of a disturbed cell ended with ok.
bool is_disturbed(const std::vector<Json>& rounds, double usual_calibration) {
  const Json cell = result::combine(Json::object(), Json(), rounds, Json(), usual_calibration);
  return cell["status"] == "disturbed";
}

std::string retried(const std::vector<Json>& rounds, const std::set<std::string>& retry,
                    double usual_calibration) {
  for (const Json& round : rounds) {
    const std::string status = round.value("status", "");
    if (retry.count(status) != 0) return "--retry " + status;
  }
  if (retry.count("disturbed") != 0 && is_disturbed(rounds, usual_calibration)) {
    return "--retry disturbed";
  }
  return {};
}

}  // namespace

Json to_json(const Identity& identity) {
  return {{"binary", identity.binary},
          {"machine", identity.machine},
          {"threads", identity.threads},
          {"seed", identity.seed},
          {"measure", identity.measure}};
}

Resumed resumed_records(const JournalContents& journal, const std::vector<std::string>& ids,
                        const Json& identity, const std::set<std::string>& retry) {
  Resumed resumed;
  resumed.skipped = journal.skipped;
  const double usual = result::usual_calibration(journal.rounds);
  for (const std::string& id : ids) {
    if (const auto fault = journal.faults.find(id); fault != journal.faults.end()) {
      resumed.repeated[id] = fault->second;
      continue;
    }
    const auto found = journal.rounds.find(id);
    if (found == journal.rounds.end()) continue;
    std::string reason = difference(journal.identities.at(id), identity);
    if (reason.empty()) reason = retried(found->second, retry, usual);
    if (reason.empty()) {
      resumed.records[id] = found->second;
    } else {
      resumed.repeated[id] = reason;
    }
  }
  return resumed;
}

}  // namespace attnbench::run
