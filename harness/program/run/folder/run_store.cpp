#include "harness/program/run/folder/run_store.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/result/document.hpp"
#include "harness/program/run/folder/combine.hpp"
#include "harness/program/run/folder/samples.hpp"

namespace attnbench::run {
namespace {

/// The records of `journal` that hold, less those that cannot be joined with what is planned.
Resumed usable_records(const JournalContents& journal, const std::vector<Planned>& planned,
                       const Reuse& reuse) {
  std::vector<std::string> ids;
  for (const Planned& one : planned) ids.push_back(one.id());
  Resumed usable = resumed_records(journal, ids, reuse.identity, reuse.retry);
  for (const Planned& one : planned) {
    const auto found = usable.records.find(one.id());
    if (found == usable.records.end()) continue;
    const result::CellRecord cell = planned_record(one.cell, one.forecast);
    for (const result::RoundRecord& record : found->second) {
      const std::string fault = joined_fault(cell, record);
      if (fault.empty()) continue;
      usable.repeated[one.id()] = "its record is not of the form of one: " + fault;
      usable.records.erase(found);
      break;
    }
  }
  return usable;
}

}  // namespace

RunStore::RunStore(RunFolder folder, bool keep_checkpoints)
    : folder_(std::move(folder)),
      journal_(folder_.journal()),
      keep_checkpoints_(keep_checkpoints) {}

Resumed RunStore::resume(const Json& header, const std::vector<Planned>& planned,
                         const Reuse& reuse) {
  const JournalContents earlier = read_journal(folder_.journal());
  journal_.append(header);
  Resumed usable = usable_records(earlier, planned, reuse);
  for (const auto& [id, reason] : usable.repeated) {
    journal_.append({{"type", "repeat"}, {"cell", id}, {"reason", reason}});
  }
  records_ = usable.records;
  if (identity_from(earlier.header.at("identity")) == reuse.identity) probes_ = earlier.probes;
  return usable;
}

Resumed RunStore::copy_from(const RunFolder& other, const std::vector<Planned>& planned,
                            const Reuse& reuse) {
  Resumed usable = usable_records(read_journal(other.journal()), planned, reuse);
  for (auto one = usable.records.begin(); one != usable.records.end();) {
    const auto& [id, rounds] = *one;
    if (records_.count(id) != 0) {
      one = usable.records.erase(one);
      continue;
    }
    for (result::RoundRecord record : rounds) {
      record.reused_from = other.path.string();
      journal_.append(record);
      records_[id].push_back(std::move(record));
    }
    ++one;
  }
  return usable;
}

void RunStore::add(result::RoundRecord record) {
  journal_.append(record);
  if (record.ok() && !keep_checkpoints_) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_.checkpoints(record.cell), ignored);
  }
  records_[record.cell].push_back(std::move(record));
}

void RunStore::add_probe(DeviceProbe answer) {
  journal_.append(answer);
  probes_[answer.device] = std::move(answer);
}

void RunStore::drop_empty_log(const std::string& cell) const {
  std::error_code ignored;
  const std::filesystem::path log = folder_.cell_log(cell);
  if (std::filesystem::file_size(log, ignored) == 0) std::filesystem::remove(log, ignored);
}

void RunStore::write_result(const result::Result& result) const {
  result::write_result(folder_.result(), without_samples(result, folder_.journal()));
}

std::string RunStore::resume_command(const std::string& verb) const {
  return "attnbench " + verb + " --resume " + folder_.path.string();
}

}  // namespace attnbench::run
