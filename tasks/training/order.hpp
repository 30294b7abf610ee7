// The order in which a data set is seen: epochs of batches, each decided by the seed and its number
// alone, so that training can go on in the middle.
#pragma once

#include <cstdint>
#include <vector>

namespace attnbench::tasks::learning {

/// Examples of one segment that are seen together.
struct Handful {
  std::size_t segment = 0;
  std::vector<std::int64_t> examples;
};

struct Order {
  std::vector<std::int64_t> sizes;  ///< examples of each segment
  std::int64_t batch = 1;           ///< examples in a step; the last of a segment may be fewer
  /// Whether each epoch shuffles the examples of a segment, and then the batches of all segments;
  /// else both come as they are numbered, the same in every epoch.
  bool shuffled = true;
  /// Whether each epoch has other examples, as many: none is seen twice.
  bool fresh = false;
  std::uint64_t seed = 0;

  std::int64_t steps_per_epoch() const;
  /// All of one epoch, every example once.
  std::vector<Handful> epoch(std::int64_t number) const;
};

}  // namespace attnbench::tasks::learning
