// The part of the supervisor that reads and writes the run's past: header, earlier records, result.
#include <algorithm>

#include "core/schema/result_check.hpp"
#include "harness/run/folder/combine.hpp"
#include "harness/run/folder/resume.hpp"
#include "harness/run/folder/run_result.hpp"
#include "harness/run/supervise/supervisor.hpp"

namespace attnbench::run {
namespace {

std::vector<std::string> ids_of(const std::vector<Planned>& planned) {
  std::vector<std::string> ids;
  for (const Planned& one : planned) ids.push_back(one.id());
  return ids;
}

/// Of records that each have their form, those that cannot be joined with what was planned.
void drop_unusable(Kept& kept, const std::vector<Planned>& planned) {
  for (const Planned& one : planned) {
    const auto found = kept.rounds.find(one.id());
    if (found == kept.rounds.end()) continue;
    for (const Json& record : found->second) {
      const std::string fault = result::joined_fault(one.cell, one.forecast, record);
      if (fault.empty()) continue;
      kept.repeated[one.id()] = "its record is not of the form of one: " + fault;
      kept.rounds.erase(found);
      break;
    }
  }
}

}  // namespace

Json Supervisor::header() const {
  return {{"type", "header"},
          {"schema", journal_schema},
          {"suite", settings_.suite.header},
          {"cells", settings_.suite.cells},
          {"measure", settings_.suite.measure},
          {"rounds", rounds_},
          {"plugins", settings_.plugins},
          {"seed", settings_.seed},
          {"threads", settings_.threads},
          {"jobs", settings_.jobs},
          {"blas", to_json(blas_)},
          {"command", settings_.command},
          {"reproduce", settings_.reproduce},
          {"started_at", started_at_},
          {"identity", identity_}};
}

void Supervisor::take_earlier(const JournalContents& contents) {
  Kept kept = keep(contents, ids_of(planned_), identity_, settings_.retry);
  drop_unusable(kept, planned_);
  for (const auto& [id, reason] : kept.repeated) {
    journal_->append({{"type", "repeat"}, {"cell", id}, {"reason", reason}});
  }
  records_ = kept.rounds;
  if (contents.header.value("identity", Json()) == identity_) probes_ = contents.probes;
  Progress notes(settings_.progress, 0);
  notes.say("Going on with " + folder_.path.string() + ": " + std::to_string(kept.rounds.size()) +
            " of " + std::to_string(planned_.size()) + " cells have records that hold.");
  for (const Planned& planned : planned_) {
    const auto found = kept.repeated.find(planned.id());
    if (found == kept.repeated.end()) continue;
    notes.say("  again: " + suite::describe(planned.cell) + ": " + found->second);
  }
}

void Supervisor::take_from_other_run() {
  const RunFolder other = find_run_folder(settings_.reuse);
  Kept kept = keep(read_journal(other.journal()), ids_of(planned_), identity_, settings_.retry);
  drop_unusable(kept, planned_);
  std::size_t taken = 0;
  for (const auto& [id, rounds] : kept.rounds) {
    if (records_.count(id) != 0) continue;
    ++taken;
    for (Json record : rounds) {
      record["reused_from"] = settings_.reuse.string();
      journal_->append(record);
      records_[id].push_back(std::move(record));
    }
  }
  Progress notes(settings_.progress, 0);
  notes.say("Taken from " + settings_.reuse.string() + ": " + std::to_string(taken) + " of " +
            std::to_string(planned_.size()) + " cells.");
  for (const auto& [id, reason] : kept.repeated) notes.say("  not taken: " + id + ": " + reason);
}

Json Supervisor::result(const std::string& state, const std::string& reason) const {
  RunFacts facts;
  facts.state = state;
  facts.reason = reason;
  facts.started_at = started_at_;
  facts.command = settings_.command;
  facts.reproduce = settings_.reproduce;
  facts.seed = settings_.seed;
  facts.threads = settings_.threads;
  facts.jobs = settings_.jobs;
  facts.rounds = rounds_;
  facts.plugins = settings_.plugins;
  facts.shard = settings_.shard;
  facts.binary = identity_.at("binary");
  facts.suite = settings_.suite.header;
  facts.machine = machine_;
  facts.blas_core_kept = settings_.keep_blas_core;
  facts.waited_for_quiet_seconds = waited_for_quiet_seconds_;
  return run_result(facts, planned_, records_, probes_);
}

}  // namespace attnbench::run
