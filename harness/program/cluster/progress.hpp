// How far a submission is: each shard by its journal, its result and Slurm's queue.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/program/cluster/submission.hpp"

namespace attnbench::cluster {

/// A task in Slurm's queue.
struct QueuedTask {
  std::string state;   ///< RUNNING, PENDING, COMPLETING, …
  std::string reason;  ///< why it waits, or the node
};
/// The queued tasks by shard.
using Queue = std::map<int, QueuedTask>;

/// Reads the queue from lines of squeue's "%i|%T|%R", ids such as 12_3; other lines are left out.
Queue queue_from(const std::string& output);

struct ShardProgress {
  int index = 0;
  /// One of: finished; running, pending or another state of Slurm in small letters; else
  /// interrupted, killed (it has a journal, but no result of its last start) or not started.
  std::string state;
  std::string reason;                        ///< why a pending task waits
  std::map<std::string, std::size_t> cells;  ///< by status; "open": rounds are left
  std::size_t rounds_done = 0;
  std::size_t rounds_left = 0;
  double seconds = 0;  ///< spent on the rounds that are done

  bool finished() const { return state == "finished"; }
  bool at_work() const;  ///< in the queue
};

/// The progress of every shard; `queue` is nothing where Slurm could not be asked.
std::vector<ShardProgress> progress_of(const Submission& submission, const SubmissionFolder& folder,
                                       const std::optional<Queue>& queue);

/// The shards that lack cells, and those with cells of a status in `retry`.
std::vector<int> unfinished(const std::vector<ShardProgress>& shards,
                            const std::vector<std::string>& retry);

/// Rounds a minute of the shards that run, and the seconds that the longest of those in the queue
/// still takes at its rate; nothing where no round is done, or none is left.
struct SubmissionPace {
  double rounds_per_minute = 0;
  double seconds_left = 0;
};
std::optional<SubmissionPace> pace_of(const std::vector<ShardProgress>& shards);

}  // namespace attnbench::cluster
