// Crew: the processes that train one model together, each on its share of every batch, through
// c10d's Gloo. All of them hold the same weights at all times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attention/torch/torch.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks::learning {

class Crew {
 public:
  virtual ~Crew() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// In the place of `tensor` [N], on the CPU, the sum of all processes'. The same bits in each.
  virtual void add_up(at::Tensor& tensor) = 0;
  /// In the place of `tensor`, that of the first process. Likewise.
  virtual void take_first(at::Tensor& tensor) = 0;
};

/// Waits for the others of `seat`, which must join with the same `name`, for `seconds` at most.
/// Throws Error: nobody came, or this build has no c10d with Gloo (then it says what it lacks).
std::unique_ptr<Crew> join_crew(const Seat& seat, const std::string& name, double seconds);

/// Whether join_crew can.
bool has_crews();

/// The part of `count` that process `rank` of `size` takes: [first, last).
std::pair<std::int64_t, std::int64_t> share_of(std::int64_t count, int rank, int size);

}  // namespace attnbench::tasks::learning
