#include "harness/program/run/folder/samples.hpp"

#include <utility>

#include "core/failure.hpp"
#include "harness/program/run/folder/journal.hpp"
#include "harness/program/run/folder/run_folder.hpp"

namespace attnbench::run {
namespace {

template <typename Visit>
void for_each_round(result::Result& result, const Visit& visit) {
  for (result::CellRecord& cell : result.cells) {
    for (auto& [what, timing] : cell.timing) {
      for (result::TimingRound& round : timing.rounds) visit(cell, what, round);
    }
  }
}

bool lacks_samples(result::Result& result) {
  std::size_t rounds = 0, samples = 0;
  for_each_round(
      result, [&](const result::CellRecord&, const std::string&, const result::TimingRound& round) {
        ++rounds;
        samples += round.samples_seconds.size();
      });
  return rounds > 0 && samples == 0;
}

/// That timing in the cell's record of that round; null where there is none.
const result::TimingRound* measured(const Records& records, const std::string& cell,
                                    const std::string& what, std::optional<std::int64_t> round) {
  const auto found = records.find(cell);
  if (found == records.end() || !round) return nullptr;
  for (const result::RoundRecord& record : found->second) {
    const auto timing = record.measured.timing.find(what);
    if (record.round == *round && timing != record.measured.timing.end()) return &timing->second;
  }
  return nullptr;
}

}  // namespace

result::Result without_samples(result::Result result, const std::filesystem::path& journal) {
  result.run.samples = journal.filename();
  for_each_round(result,
                 [](const result::CellRecord&, const std::string&, result::TimingRound& round) {
                   round.samples_seconds.clear();
                   round.samples_cpu_share.reset();
                   round.samples_switches.reset();
                   round.preempted.reset();
                 });
  return result;
}

result::Result with_samples(const std::filesystem::path& file_or_folder) {
  namespace fs = std::filesystem;
  result::Result result = result::read_result(file_or_folder);
  if (result.run.samples.empty()) {
    if (!lacks_samples(result)) return result;
    throw UsageFailure(file_or_folder.string() + ": it has no samples: name a run's folder" +
                       (result.run.merged ? ", that of one of the merged runs" : ""));
  }
  const fs::path folder = folder_holding(file_or_folder).path;
  const fs::path journal = folder / fs::path(result.run.samples).filename();
  if (!fs::exists(journal)) {
    throw UsageFailure(file_or_folder.string() + ": its samples are in " + result.run.samples +
                       ", which is not beside it: name the folder of the run");
  }
  const Records records = read_journal(journal).rounds;
  for_each_round(result, [&](const result::CellRecord& cell, const std::string& what,
                             result::TimingRound& round) {
    const result::TimingRound* const whole = measured(records, cell.id, what, round.round);
    if (whole == nullptr) return;
    round.samples_seconds = whole->samples_seconds;
    round.samples_cpu_share = whole->samples_cpu_share;
    round.samples_switches = whole->samples_switches;
    round.preempted = whole->preempted;
  });
  if (lacks_samples(result)) {
    throw UsageFailure(journal.string() + ": it has none of the samples of " +
                       file_or_folder.string());
  }
  result.run.samples.clear();
  return result;
}

result::Result with_samples_there(const std::filesystem::path& file_or_folder) {
  try {
    return with_samples(file_or_folder);
  } catch (const std::exception&) {  // no journal, or a damaged one
    result::Result result = result::read_result(file_or_folder);
    result.run.samples.clear();
    return result;
  }
}

}  // namespace attnbench::run
