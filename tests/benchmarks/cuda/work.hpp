// What is timed on the device, and how: launches over rotating sets of arrays, timed by events, or
// as replays of a graph where one launch is short.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "attention/kernels/cuda/device.hpp"

namespace attnbench::bench {

using kernels::cuda::Stream;

/// What one launch must do at least, whatever the kernel does beyond it.
struct Cost {
  double useful_flops = 0;
  double minimal_bytes = 0;  ///< each input read once, each output written once
  double exponentials = 0;
  std::string gemm;  ///< the arithmetic of its products: bf16, fp16, tf32, fp32
};

/// A body with its arrays, which the closure owns.
struct Work {
  /// Queues one call on the arrays of one set, 0 <= set < sets. Throws where it cannot.
  std::function<void(int set, Stream stream)> launch;
  /// Enough that by the time a set comes round again the L2 has forgotten it; see rotating_sets.
  int sets = 1;
  Cost cost;
  std::size_t workspace_bytes = 0;
};

/// The time of one launch, in seconds.
struct Timing {
  double median = 0;
  double low = 0;  ///< the median's interval at 95 %
  double high = 0;
  double minimum = 0;
  int samples = 0;
  int launches = 0;     ///< in one sample
  bool graph = false;   ///< replays, else launches with an event between any two
  double clock_hz = 0;  ///< of a multiprocessor, right behind the last launch
};

/// Below this a launch is timed by replays of a graph: the gaps between launches would show.
constexpr double short_seconds = 100e-6;

/// Warms up, then samples for about 50 ms, at least 10 samples and at most 200. Throws
/// kernels::cuda::Error where a launch fails.
Timing measure(const Work& work);

}  // namespace attnbench::bench
