#include "harness/run/folder/run_result.hpp"

#include <array>
#include <ctime>

#include "core/result/document.hpp"
#include "core/result/record.hpp"
#include "harness/run/folder/combine.hpp"
#include "harness/run/folder/disturbance.hpp"
#include "harness/run/folder/fingerprint.hpp"

namespace attnbench::run {
namespace {

std::time_t moment_of(const std::string& text) {
  std::tm parts{};
  return strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr ? 0 : timegm(&parts);
}

Json run_part(const RunFacts& facts) {
  Json run = {{"command", facts.command},  {"started_at", facts.started_at},
              {"finished_at", now_text()}, {"seed", facts.seed},
              {"threads", facts.threads},  {"rounds", facts.rounds},
              {"state", facts.state}};
  run["wall_seconds"] = std::difftime(std::time(nullptr), moment_of(facts.started_at));
  if (facts.jobs > 1) run["jobs"] = facts.jobs;
  if (facts.waited_for_quiet_seconds > 0) {
    run["waited_for_quiet_seconds"] = facts.waited_for_quiet_seconds;
  }
  if (!facts.reason.empty()) run["reason"] = facts.reason;
  if (!facts.plugins.empty()) run["plugins"] = facts.plugins;
  if (facts.shard.count > 1) {
    run["shard"] = {{"index", facts.shard.index}, {"count", facts.shard.count}};
  }
  return run;
}

/// OpenBLAS's variables were kept from the worker, so they are no source of noise.
Json machine_part(const RunFacts& facts, const std::map<std::string, Json>& probes) {
  Json machine = facts.machine;
  Json blas = machine.value("blas", Json::object());
  for (const auto& [device, probe] : probes) {
    if (!probe.contains("machine")) continue;
    machine.update(probe.at("machine"));
    // The worker knows the library, the supervisor who chose it.
    const Json theirs = machine.value("blas", Json());
    if (theirs.is_object()) blas.update(theirs);
  }
  if (!blas.empty()) machine["blas"] = blas;
  if (facts.blas_core_kept) return machine;
  Json kept = Json::array();
  for (const Json& sentence : machine.value("spoilers", Json::array())) {
    if (sentence.get<std::string>().find("OPENBLAS_") == std::string::npos)
      kept.push_back(sentence);
  }
  machine["spoilers"] = kept;
  Json removed = Json::array();
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}) {
    if (machine.value("environment", Json::object()).contains(name)) removed.push_back(name);
  }
  if (!removed.empty()) machine["kept_from_worker"] = removed;
  return machine;
}

/// How threads waited for each other: passive where those of any cell did.
void add_waiting(Json& run, const Json& cells) {
  for (const Json& cell : cells) {
    if (!cell.contains("waiting") || run.value("waiting", "") == "passive") continue;
    run["waiting"] = cell["waiting"];
  }
}

Json cell_part(const RunFacts& facts, const Planned& planned, const std::vector<Json>& rounds,
               const Json& ceilings, double usual_calibration) {
  std::vector<Json> told = rounds;
  if (!planned.runs()) told = {to_json(*planned.settled)};
  Json cell = result::combine(planned.cell, planned.forecast, told, ceilings, usual_calibration);
  if (!facts.reproduce.empty()) cell["reproduce"] = facts.reproduce + " --only " + planned.id();
  for (const Json& round : told) {
    for (const char* part : {"reused_from", "side_by_side", "waiting"}) {
      if (round.contains(part)) cell[part] = round.at(part);
    }
  }
  return cell;
}

}  // namespace

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

Json run_result(const RunFacts& facts, const std::vector<Planned>& planned,
                const std::map<std::string, std::vector<Json>>& records,
                const std::map<std::string, Json>& probes) {
  result::Parts parts;
  parts.executable = "attnbench";
  parts.suite = facts.suite;
  parts.run = run_part(facts);
  parts.machine = machine_part(facts, probes);
  parts.provenance = provenance(facts.binary);
  if (parts.machine.contains("torch")) parts.provenance["torch"] = parts.machine["torch"];
  if (parts.machine.contains("blas")) parts.provenance["blas"] = parts.machine["blas"];
  parts.ceilings = Json::object();
  for (const auto& [device, probe] : probes) {
    if (probe.contains("ceilings")) parts.ceilings[device] = probe.at("ceilings");
  }
  const double usual = result::usual_calibration(records);
  if (usual > 0) parts.run["calibration_seconds"] = usual;
  for (const Planned& one : planned) {
    const auto found = records.find(one.id());
    const std::vector<Json> rounds = found == records.end() ? std::vector<Json>{} : found->second;
    const Json ceilings = parts.ceilings.value(one.cell.device, Json::object());
    parts.cells.push_back(cell_part(facts, one, rounds, ceilings, usual));
  }
  add_waiting(parts.run, parts.cells);
  return result::assemble(parts);
}

}  // namespace attnbench::run
