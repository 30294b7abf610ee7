#include "harness/program/run/folder/merge.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/failure.hpp"
#include "core/result/machines.hpp"
#include "core/text/printable.hpp"
#include "harness/program/run/folder/combine.hpp"
#include "harness/program/run/folder/merge_machines.hpp"
#include "harness/program/run/folder/resume.hpp"
#include "harness/program/run/folder/run_folder.hpp"
#include "harness/program/run/folder/samples.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/suite/suite.hpp"

namespace attnbench::run {
namespace {

namespace fs = std::filesystem;
using result::CellRecord;

/// What shards of one suite have in common.
struct SharedFacts {
  std::string suite;
  std::string hash;
  std::string profile;
  std::string binary;
  std::string seed;

  std::vector<std::pair<std::string, std::string>> named() const {
    return {{"suite", suite},
            {"hash of the suite", hash},
            {"profile", profile},
            {"binary", binary},
            {"seed", seed}};
  }
};

SharedFacts facts_of(const Share& share) {
  const result::SuiteInfo suite =
      share.result ? share.result->suite : Json(share.header->suite).get<result::SuiteInfo>();
  const std::optional<std::uint64_t> seed =
      share.result ? share.result->run.seed : share.header->seed;
  SharedFacts facts;
  facts.suite = suite.name;
  facts.hash = suite.hash;
  facts.profile = suite.profile.empty() ? "none" : suite.profile;
  facts.binary =
      share.result ? share.result->provenance.binary : identity_from(share.header->identity).binary;
  facts.seed = seed ? std::to_string(*seed) : "";
  return facts;
}

/// "seed: 0 in runs/a, 1 in runs/b" for each fact that is not the first run's.
std::vector<std::string> differences_of_runs(const std::vector<Share>& shares) {
  std::vector<std::string> found;
  const auto first = facts_of(shares.front()).named();
  for (std::size_t i = 1; i < shares.size(); ++i) {
    const auto other = facts_of(shares[i]).named();
    for (std::size_t fact = 0; fact < first.size(); ++fact) {
      const auto& [name, value] = first[fact];
      if (other[fact].second == value) continue;
      found.push_back(name + ": " + text::quotable(value) + " in " + shares.front().source + ", " +
                      text::quotable(other[fact].second) + " in " + shares[i].source);
    }
  }
  return found;
}

std::string joined_by(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

/// Whether the run ended before the cell's first round.
bool unmeasured(const CellRecord& cell) {
  return cell.status == Status::skipped && cell.reason == not_reached;
}

/// What was measured of a cell, without the words on how it came into its run.
Json content_of(const CellRecord& cell) {
  Json content = cell;
  for (const char* key : {"reproduce", "reused_from", "machine"}) content.erase(key);
  return content;
}

struct Taken {
  CellRecord cell;
  std::size_t share = 0;
};

/// The cells of all runs by id.
class CellsById {
 public:
  explicit CellsById(const std::vector<Share>& shares) : shares_(shares) {
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (!shares[i].result) continue;
      for (const CellRecord& cell : shares[i].result->cells) take(cell, i);
    }
  }
  const std::vector<std::string>& order() const { return order_; }
  const Taken* find(const std::string& id) const {
    const auto found = taken_.find(id);
    return found == taken_.end() ? nullptr : &found->second;
  }

 private:
  void take(const CellRecord& cell, std::size_t share) {
    const auto [place, is_new] = taken_.try_emplace(cell.id, Taken{cell, share});
    if (is_new) return order_.push_back(cell.id);
    if (unmeasured(cell)) return;
    Taken& known = place->second;
    if (unmeasured(known.cell)) {
      known = {cell, share};
    } else if (content_of(known.cell) != content_of(cell)) {
      throw UsageFailure("the cell " + text::quotable(cell.id) + " (" + text::quotable(cell.label) +
                         ") was measured twice, in " + shares_[known.share].source + " and in " +
                         shares_[share].source + ": leave one of the runs out");
    }
  }

  const std::vector<Share>& shares_;
  std::vector<std::string> order_;
  std::map<std::string, Taken> taken_;
};

std::optional<result::ShardInfo> shard_of(const Share& share) {
  return share.result ? share.result->run.shard : std::nullopt;
}

/// What the result keeps of each run that was merged.
result::MergedRun account_of(const Share& share) {
  const SharedFacts facts = facts_of(share);
  result::MergedRun account;
  account.source = share.source;
  account.binary = facts.binary;
  account.seed = facts.seed;
  account.shard = shard_of(share);
  account.state = "no result";
  if (!share.result) return account;
  const result::RunInfo& run = share.result->run;
  account.host = share.result->machine.host;
  account.state = run.state;
  account.started_at = run.started_at;
  account.finished_at = run.finished_at;
  account.cells = share.result->cells.size();
  return account;
}

/// Where no journal lists the suite's cells, shards that are not there are missing.
std::vector<std::string> missing_shards(const std::vector<Share>& shares) {
  std::map<std::int64_t, std::set<std::int64_t>> there;
  for (const Share& share : shares) {
    const auto shard = shard_of(share);
    if (!shard) return {};
    there[shard->count].insert(shard->index);
  }
  std::vector<std::string> missing;
  if (there.size() != 1) return missing;
  const auto& [count, indices] = *there.begin();
  for (std::int64_t index = 1; index <= std::min<std::int64_t>(count, 1000000); ++index) {
    if (indices.contains(index)) continue;
    missing.push_back("shard " + std::to_string(index) + "/" + std::to_string(count));
  }
  return missing;
}

/// All cells of the suite by the journals, in its order; the same id once.
std::vector<Cell> planned_cells(const std::vector<Share>& shares) {
  std::vector<Cell> all;
  std::set<std::string> known;
  for (const Share& share : shares) {
    if (!share.header) continue;
    for (Cell& cell : cells_from(share.header->cells)) {
      if (known.insert(cell.id).second) all.push_back(std::move(cell));
    }
  }
  return all;
}

/// Facts of the whole from those of its runs.
result::RunInfo joined_run(const std::vector<Share>& shares, const MergeChoices& choices) {
  const auto with_result =
      std::find_if(shares.begin(), shares.end(), [](const Share& share) { return share.result; });
  result::RunInfo run = with_result->result->run;
  run.wall_seconds = 0;
  run.state = "complete";
  run.reason.clear();
  run.shard.reset();
  run.calibration_seconds.reset();
  run.waited_for_quiet_seconds.reset();
  run.samples.clear();
  run.command = choices.command;
  for (const Share& share : shares) {
    if (!share.result) continue;
    const result::RunInfo& one = share.result->run;
    run.started_at = std::min(run.started_at, one.started_at);
    run.finished_at = std::max(run.finished_at, one.finished_at);
    if (!one.wall_seconds) run.wall_seconds.reset();
    if (run.wall_seconds) *run.wall_seconds += *one.wall_seconds;
    if (run.threads != one.threads) run.threads.reset();
  }
  if (!choices.submission.is_null()) run.submission = choices.submission;
  run.merged.emplace();
  for (const Share& share : shares) run.merged->push_back(account_of(share));
  return run;
}

void expect_several(const std::vector<Share>& shares, bool lone) {
  if (shares.size() > 1 || (lone && !shares.empty())) return;
  const auto shard = shares.empty() ? std::nullopt : shard_of(shares.front());
  throw UsageFailure(shares.empty() ? "there is no run to merge"
                     : shard ? shares.front().source + " is shard " + std::to_string(shard->index) +
                                   " of " + std::to_string(shard->count) + ": name the others, too"
                             : shares.front().source +
                                   " is one run: there is nothing to merge it with");
}

}  // namespace

Share read_share(const fs::path& path) {
  Share share;
  share.source = text::quotable(path.string());
  std::error_code ignored;
  const RunFolder run = folder_holding(path);
  try {
    if (fs::exists(run.journal(), ignored)) {
      const auto header = read_journal(run.journal()).header.get<JournalHeader>();
      static_cast<void>(Json(header.suite).get<result::SuiteInfo>());
      static_cast<void>(cells_from(header.cells));
      share.header = header;
    }
  } catch (const std::exception&) {
    // Then it says nothing of cells that are missing; the result alone counts.
  }
  if (share.header && !fs::exists(run.result(), ignored)) return share;
  share.result = with_samples_there(path);
  return share;
}

Merged merge(std::vector<Share> shares, const MergeChoices& choices) {
  expect_several(shares, choices.lone);
  Merged merged;
  merged.forced = differences_of_runs(shares);
  if (!merged.forced.empty() && !choices.force) {
    throw UsageFailure("the runs are not shards of one suite: " + joined_by(merged.forced, "; ") +
                       ". --force merges them nevertheless, and the result says so");
  }
  for (const Share& share : shares) {
    if (share.result) continue;
    merged.unfinished.push_back(
        share.source + " has no result: continue with attnbench run --resume " + share.source);
  }
  if (merged.unfinished.size() == shares.size()) {
    throw UsageFailure("none of the runs has a result: " + joined_by(merged.unfinished, "; "));
  }
  const CellsById cells(shares);
  const MergedMachines machines(shares, choices.alike);
  const auto first = std::find_if(shares.begin(), shares.end(), [](const Share& share) {
    return share.result && !share.result->cells.empty();
  });
  const auto any =
      std::find_if(shares.begin(), shares.end(), [](const Share& share) { return share.result; });
  merged.result = first == shares.end() ? *any->result : *first->result;
  merged.result.cells.clear();
  merged.result.run = joined_run(shares, choices);
  if (!merged.forced.empty()) merged.result.run.forced = merged.forced;

  const auto add = [&](const Taken& taken) {
    CellRecord cell = taken.cell;
    if (machines.parts().size() > 1) {
      result::set_machine(cell, machines.name_of(taken.share));
    }
    merged.result.cells.push_back(std::move(cell));
  };
  std::set<std::string> done;
  const std::vector<Cell> planned = planned_cells(shares);
  for (const Cell& cell : planned) {
    done.insert(cell.id);
    const Taken* const taken = cells.find(cell.id);
    if (taken != nullptr) add(*taken);
    if (taken != nullptr && !unmeasured(taken->cell)) continue;
    merged.missing.push_back(suite::describe(cell));
    if (taken != nullptr) continue;
    CellRecord record = planned_record(cell, {});
    record.reason = "none of the runs that were merged has this cell";
    merged.result.cells.push_back(std::move(record));
  }
  for (const std::string& id : cells.order()) {
    const Taken& taken = *cells.find(id);
    if (done.contains(id)) continue;
    add(taken);
    if (unmeasured(taken.cell)) merged.missing.push_back(taken.cell.label + "  [" + id + "]");
  }
  if (planned.empty()) {
    for (const std::string& shard : missing_shards(shares)) merged.missing.push_back(shard);
  }
  if (machines.parts().size() > 1) result::set_machines(merged.result, machines.parts());
  if (!merged.missing.empty()) {
    merged.result.run.state = "stopped";
    merged.result.run.reason =
        std::to_string(merged.missing.size()) +
        (merged.missing.size() == 1 ? " part is missing" : " parts are missing");
  }
  merged.result = result::assemble(std::move(merged.result), "attnbench");
  return merged;
}

}  // namespace attnbench::run
