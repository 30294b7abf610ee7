// Noise: how much the same work differs from itself on this machine, now.
#pragma once

namespace attnbench::measure {

/// Of a fixed piece of work timed over and over, as two alternating halves.
struct Noise {
  double median_seconds = 0;
  double spread = 0;      ///< (90th percentile - 10th) / median of all of them
  double difference = 0;  ///< |median of A / median of B - 1|, where A and B are the same work
};

/// Takes about half a second on `threads` threads.
Noise noise_self_test(int threads);

}  // namespace attnbench::measure
