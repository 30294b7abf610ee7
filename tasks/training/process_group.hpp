// ProcessGroup: processes that train one model, each on its share of every batch, through c10d's
// Gloo. All of them hold the same weights at all times.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "attention/torch/torch.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks::training {

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Replaces `tensor` [N], on the CPU, by the sum over all processes. The same bits in each.
  virtual void all_reduce(at::Tensor& tensor) = 0;
  /// Replaces `tensor`, on the CPU, by that of the first process.
  virtual void broadcast(at::Tensor& tensor) = 0;
};

/// Waits up to `seconds` for the other processes, which must join with the same `name`. Throws
/// Error where they do not come, or where this build has no c10d with Gloo (naming what it lacks).
std::unique_ptr<ProcessGroup> join_process_group(const ProcessRank& own, const std::string& name,
                                                 double seconds);

/// Whether this build has c10d with Gloo.
bool has_process_groups();

/// The part of `count` for process `rank` of `size`: [first, last).
std::pair<std::int64_t, std::int64_t> share_of(std::int64_t count, int rank, int size);

}  // namespace attnbench::tasks::training
