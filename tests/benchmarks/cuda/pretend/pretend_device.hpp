// A device that only pretends, so that the benchmarks' own logic is tested where there is no GPU:
// memory is the host's, work is a number of seconds on a clock that is turned by hand.
#pragma once

#include <cstddef>
#include <functional>

#include "attention/kernels/cuda/device.hpp"

namespace attnbench::bench::pretend {

using kernels::cuda::Stream;

/// What the device does from now on. A program's first word on memory and refusal comes from the
/// environment: PRETEND_MEMORY, PRETEND_REFUSAL.
struct Behaviour {
  /// Between two launches of the host; none within a graph.
  double gap_seconds = 5e-6;
  /// Before the first launch of a graph.
  double graph_start_seconds = 8e-6;
  bool captures = true;  ///< false: a launch in a capture is refused
  std::size_t memory_bytes = std::size_t{8} << 30;
  std::string refusal;  ///< why there is no device; empty where there is
};
Behaviour& behaviour();

/// Queues work of this length. In a capture it only counts for the graph.
void launch(double seconds, Stream stream);

/// Launches so far, those of captures and of replays apart.
struct Count {
  int launched = 0;
  int captured = 0;
  int replayed = 0;  ///< graphs
};
Count& count();

/// Memory that is allocated now.
std::size_t allocated_bytes();

}  // namespace attnbench::bench::pretend
