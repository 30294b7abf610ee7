#include "harness/program/run/folder/resume.hpp"

#include <utility>

#include "harness/program/run/folder/combine.hpp"
#include "harness/program/run/folder/disturbance.hpp"

namespace attnbench::run {
namespace {

/// Why records made under `then` do not hold under `now`; empty if they do.
std::string difference(const Identity& then, const Identity& now) {
  if (then.binary != now.binary) return "the worker or a plugin was built anew since";
  if (then.machine != now.machine) return "it was measured on another machine";
  if (then.threads != now.threads) return "it was measured with another number of threads";
  if (then.seed != now.seed) return "it was measured with another seed";
  if (then.measure != now.measure) return "it was sampled by another rule";
  if (then.blas_core != now.blas_core) {
    return "its matrix products came from other kernels of OpenBLAS";
  }
  for (const auto& [word, card] : now.devices) {
    const auto before = then.devices.find(word);
    if (before != then.devices.end() && before->second != card) {
      return "it was measured on another device, or with another driver";
    }
  }
  return "";
}

/// Whether the rounds make a disturbed cell; each round by itself ended with ok.
bool disturbed(const std::vector<result::RoundRecord>& rounds, double usual_calibration) {
  return result::is_disturbed(combine({}, rounds, {}, usual_calibration));
}

std::string retried(const std::vector<result::RoundRecord>& rounds,
                    const std::set<std::string>& retry, double usual_calibration) {
  for (const result::RoundRecord& round : rounds) {
    const std::string status = to_string(round.status);
    if (retry.count(status) != 0) return "--retry " + status;
  }
  if (retry.count("disturbed") != 0 && disturbed(rounds, usual_calibration)) {
    return "--retry disturbed";
  }
  return {};
}

}  // namespace

ATTNBENCH_JSON_CODEC(Identity) {
  JSON_USUAL(binary, machine, threads, seed, measure);
  JSON_MAYBE(devices, blas_core);
  JSON_IGNORE_REST;
}

Identity identity_from(const Json& json) {
  try {
    return json.get<Identity>();
  } catch (const SchemaError&) {
    return {};
  }
}

Resumed resumed_records(const JournalContents& journal, const std::vector<std::string>& ids,
                        const Identity& identity, const std::set<std::string>& retry) {
  Resumed resumed;
  resumed.skipped = journal.skipped;
  const double usual = usual_calibration(journal.rounds);
  for (const std::string& id : ids) {
    if (const auto fault = journal.faults.find(id); fault != journal.faults.end()) {
      resumed.repeated[id] = fault->second;
      continue;
    }
    const auto found = journal.rounds.find(id);
    if (found == journal.rounds.end()) continue;
    std::string reason = difference(identity_from(journal.identities.at(id)), identity);
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
