// Timing a body on several threads that start together.
#pragma once

#include <functional>

namespace attnbench::measure {

/// What one thread does once; made in the thread itself, so that its memory is near it.
using Body = std::function<void()>;

/// What a team's repeated common starts took.
struct TeamTimes {
  double together = 0;    ///< least seconds until all were done
  double per_second = 0;  ///< bodies per second, each thread at its own best
};

/// After one call that warms up, `trials` (at least 1) common starts of `threads` threads.
TeamTimes time_team(int threads, int trials, const std::function<Body()>& make_body);

}  // namespace attnbench::measure
