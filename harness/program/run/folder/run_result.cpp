#include "harness/program/run/folder/run_result.hpp"

#include "core/process/fingerprint.hpp"
#include "core/result/document.hpp"
#include "core/text/format.hpp"
#include "harness/program/run/folder/combine.hpp"
#include "harness/program/run/folder/disturbance.hpp"

namespace attnbench::run {
namespace {

std::time_t moment_of(const std::string& text) {
  std::tm parts{};
  return strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr ? 0 : timegm(&parts);
}

/// Whether a record is older than this start: of the one that is resumed, or of another run.
bool has_earlier(const Records& records, const std::string& started_at) {
  for (const auto& [id, rounds] : records) {
    for (const result::RoundRecord& round : rounds) {
      if (round.started_at < started_at) return true;
    }
  }
  return false;
}

result::RunInfo run_part(const RunFacts& facts, const Records& records) {
  result::RunInfo run;
  run.command = facts.command;
  run.started_at = facts.started_at;
  run.finished_at = text::now_text();
  if (!has_earlier(records, facts.started_at)) {
    run.wall_seconds = std::difftime(std::time(nullptr), moment_of(facts.started_at));
  }
  run.seed = facts.seed;
  run.threads = facts.threads;
  run.rounds = facts.rounds;
  run.budget_seconds = facts.budget_seconds;
  run.state = facts.state;
  run.reason = facts.reason;
  if (facts.jobs > 1) run.jobs = facts.jobs;
  if (facts.waited_for_quiet_seconds > 0) {
    run.waited_for_quiet_seconds = facts.waited_for_quiet_seconds;
  }
  if (!facts.plugins.empty()) run.plugins = facts.plugins;
  if (facts.shard.count > 1) {
    run.shard = result::ShardInfo{facts.shard.index, facts.shard.count};
  }
  return run;
}

/// The supervisor's card with the worker's part. The worker knows the library of BLAS, the
/// supervisor who chose it.
result::MachineCard with_worker_part(const result::MachineCard& card,
                                     const std::map<std::string, DeviceProbe>& probes) {
  Json whole = card;
  std::optional<result::Blas> blas = card.blas;
  for (const auto& [device, probe] : probes) {
    whole.update(probe.machine);
    const Json* const theirs = find_value(probe.machine, "blas");
    if (theirs == nullptr) continue;
    blas = result::blas_as_loaded(blas.value_or(result::Blas{}), *theirs);
  }
  auto machine = whole.get<result::MachineCard>();
  machine.blas = blas;
  return machine;
}

/// OpenBLAS's variables were kept from the worker, so they are not a source of noise.
result::MachineCard machine_part(const RunFacts& facts,
                                 const std::map<std::string, DeviceProbe>& probes) {
  result::MachineCard machine = with_worker_part(facts.machine, probes);
  if (facts.blas_core_kept) return machine;
  std::vector<std::string> kept = machine.noise();
  std::erase_if(kept, [](const std::string& sentence) {
    return sentence.find("OPENBLAS_") != std::string::npos;
  });
  machine.noise_sources = kept;
  std::vector<std::string> removed;
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}) {
    if (machine.environment && machine.environment->contains(name)) removed.emplace_back(name);
  }
  if (!removed.empty()) machine.kept_from_worker = removed;
  return machine;
}

/// How threads waited for each other: passive where those of any cell did.
std::string waiting_of(const std::vector<result::CellRecord>& cells) {
  std::string waiting;
  for (const result::CellRecord& cell : cells) {
    if (!cell.waiting.empty() && waiting != "passive") waiting = cell.waiting;
  }
  return waiting;
}

result::CellRecord cell_part(const RunFacts& facts, const Planned& planned,
                             std::vector<result::RoundRecord> rounds, const Values& ceilings,
                             double usual_calibration) {
  if (!planned.runs()) {
    result::RoundRecord settled;
    settled.status = planned.settled->status;
    settled.reason = planned.settled->reason;
    if (!planned.settled->detail.empty()) settled.detail = planned.settled->detail;
    rounds = {settled};
  }
  result::CellRecord cell =
      combine(planned_record(planned.cell, planned.forecast), rounds, ceilings, usual_calibration);
  if (!facts.reproduce.empty()) cell.reproduce = facts.reproduce + " --only " + planned.id();
  for (const result::RoundRecord& round : rounds) {
    if (!round.reused_from.empty()) cell.reused_from = round.reused_from;
    if (!round.side_by_side.empty()) cell.side_by_side = round.side_by_side;
    if (!round.waiting.empty()) cell.waiting = round.waiting;
  }
  return cell;
}

}  // namespace

result::Result run_result(const RunFacts& facts, const std::vector<Planned>& planned,
                          const Records& records,
                          const std::map<std::string, DeviceProbe>& probes) {
  result::Result result;
  result.suite = facts.suite;
  result.run = run_part(facts, records);
  result.machine = machine_part(facts, probes);
  result.provenance = process::provenance(facts.binary);
  if (const Json* const torch = find_value(result.machine.further, "torch")) {
    result.provenance.further["torch"] = *torch;
  }
  if (result.machine.blas) result.provenance.further["blas"] = *result.machine.blas;
  for (const auto& [device, probe] : probes) {
    if (!probe.ceilings.empty()) result.ceilings[device] = probe.ceilings;
  }
  const double usual = usual_calibration(records);
  if (usual > 0) result.run.calibration_seconds = usual;
  for (const Planned& one : planned) {
    const auto found = records.find(one.id());
    result.cells.push_back(cell_part(
        facts, one, found == records.end() ? std::vector<result::RoundRecord>{} : found->second,
        result.ceilings_of(one.cell.device), usual));
  }
  result.run.waiting = waiting_of(result.cells);
  return result::assemble(std::move(result), "attnbench");
}

}  // namespace attnbench::run
