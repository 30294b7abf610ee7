#include "harness/program/cluster/progress.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

#include "core/failure.hpp"
#include "core/process/limits.hpp"
#include "core/result/document.hpp"
#include "harness/program/run/folder/journal.hpp"
#include "harness/program/run/folder/run_folder.hpp"

namespace attnbench::cluster {
namespace {

namespace fs = std::filesystem;

std::string small_letters(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

/// The rounds that the journal has of each cell; nothing where it cannot be read.
std::optional<run::Records> records_of(const run::RunFolder& folder) {
  std::error_code ignored;
  if (!fs::exists(folder.journal(), ignored)) return std::nullopt;
  try {
    return run::read_journal(folder.journal()).rounds;
  } catch (const Failure&) {
    return run::Records{};  // it may be about to write its first line
  }
}

std::optional<result::Result> result_of(const run::RunFolder& folder) {
  std::error_code ignored;
  if (!fs::exists(folder.result(), ignored)) return std::nullopt;
  try {
    return result::read_result(folder.result());
  } catch (const Failure&) {
    return std::nullopt;
  }
}

/// Counts one cell by its rounds.
void count(ShardProgress& shard, const SubmittedCell& cell,
           const std::vector<result::RoundRecord>& rounds) {
  if (cell.rounds == 0) {
    ++shard.cells["not to run"];
    return;
  }
  std::size_t done = 0;
  for (const result::RoundRecord& round : rounds) {
    shard.seconds += round.wall_seconds.value_or(0);
    ++shard.rounds_done;
    if (!round.ok()) {
      ++shard.cells[to_string(round.status)];
      return;
    }
    ++done;
  }
  const auto wanted = static_cast<std::size_t>(cell.rounds);
  shard.rounds_left += wanted - std::min(wanted, done);
  ++shard.cells[done < wanted ? "open" : "ok"];
}

/// A result knows more of a cell than its rounds do: whether it was disturbed or wrong.
void recount(ShardProgress& shard, const result::Result& result) {
  shard.cells.clear();
  for (const result::CellRecord& cell : result.cells) ++shard.cells[to_string(cell.status)];
}

std::string state_of(const ShardProgress& shard, const std::optional<QueuedTask>& task, bool begun,
                     const std::optional<result::Result>& result) {
  const bool complete = result && result->run.state == "complete" && shard.rounds_left == 0;
  if (complete) return "finished";
  if (task) return small_letters(task->state);
  if (!begun) return "not started";
  return result && result->run.state != "complete" ? "interrupted" : "killed";
}

}  // namespace

Queue queue_from(const std::string& output) {
  Queue queue;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t under = line.find('_');
    const std::size_t first = line.find('|');
    const std::size_t second = first == std::string::npos ? first : line.find('|', first + 1);
    if (under == std::string::npos || second == std::string::npos || under > first) continue;
    int index = 0;
    const char* const end = line.data() + first;
    const auto read = std::from_chars(line.data() + under + 1, end, index);
    if (read.ec != std::errc() || read.ptr != end) continue;
    queue[index] = {line.substr(first + 1, second - first - 1), line.substr(second + 1)};
  }
  return queue;
}

bool ShardProgress::at_work() const {
  return state != "finished" && state != "interrupted" && state != "killed" &&
         state != "not started";
}

std::vector<ShardProgress> progress_of(const Submission& submission, const SubmissionFolder& folder,
                                       const std::optional<Queue>& queue) {
  std::vector<ShardProgress> shards;
  for (int index = 1; index <= submission.jobs; ++index) {
    ShardProgress shard;
    shard.index = index;
    const run::RunFolder own{folder.shard(index)};
    const auto records = records_of(own);
    const process::Shard share{index, submission.jobs};
    for (const SubmittedCell& cell : submission.cells) {
      if (!share.holds(cell.id)) continue;
      const auto found = records ? records->find(cell.id) : run::Records::const_iterator{};
      const bool known = records && found != records->end();
      count(shard, cell, known ? found->second : std::vector<result::RoundRecord>{});
    }
    std::optional<QueuedTask> task;
    if (queue && queue->contains(index)) task = queue->at(index);
    if (task) shard.reason = task->reason;
    const auto result = result_of(own);
    shard.state = state_of(shard, task, records.has_value(), result);
    if (shard.finished()) recount(shard, *result);
    shards.push_back(std::move(shard));
  }
  return shards;
}

std::vector<int> unfinished(const std::vector<ShardProgress>& shards,
                            const std::vector<std::string>& retry) {
  std::vector<int> indices;
  for (const ShardProgress& shard : shards) {
    const bool again = std::any_of(retry.begin(), retry.end(), [&](const std::string& status) {
      return shard.cells.contains(status);
    });
    if (!shard.finished() || again) indices.push_back(shard.index);
  }
  return indices;
}

std::optional<SubmissionPace> pace_of(const std::vector<ShardProgress>& shards) {
  double seconds = 0;
  std::size_t done = 0;
  std::size_t running = 0;
  for (const ShardProgress& shard : shards) {
    seconds += shard.seconds;
    done += shard.rounds_done;
    running += shard.state == "running" ? 1 : 0;
  }
  if (done == 0 || seconds <= 0) return std::nullopt;
  const double usual = seconds / static_cast<double>(done);
  SubmissionPace pace;
  pace.rounds_per_minute = 60 / usual * static_cast<double>(running);
  for (const ShardProgress& shard : shards) {
    if (!shard.at_work()) continue;
    const double own = shard.rounds_done > 0 && shard.seconds > 0
                           ? shard.seconds / static_cast<double>(shard.rounds_done)
                           : usual;
    pace.seconds_left = std::max(pace.seconds_left, own * static_cast<double>(shard.rounds_left));
  }
  return pace.seconds_left > 0 ? std::optional(pace) : std::nullopt;
}

}  // namespace attnbench::cluster
