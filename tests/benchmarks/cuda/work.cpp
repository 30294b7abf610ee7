#include "tests/benchmarks/cuda/work.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "core/statistics.hpp"
#include "tests/benchmarks/cuda/device_loops.hpp"

namespace attnbench::bench {
namespace {

using kernels::cuda::Event;
using kernels::cuda::Graph;
using kernels::cuda::OwnedStream;

constexpr double sampled_seconds = 50e-3;
constexpr double warm_up_seconds = 10e-3;
/// One sample of a graph lasts this long, so that its own start (some microseconds) does not show.
constexpr double replay_seconds = 1e-3;
constexpr int most_launches = 512;

int times(double whole, double part, int least, int most) {
  return static_cast<int>(
      std::clamp(std::ceil(whole / part), static_cast<double>(least), static_cast<double>(most)));
}

/// Seconds of each of `count` bodies. All are queued before any is waited for, so that the host
/// runs ahead and the device never idles.
std::vector<double> timed(int count, Stream stream, const std::function<void(int)>& body) {
  const auto events = std::make_unique<Event[]>(static_cast<std::size_t>(count) + 1);
  events[0].record(stream);
  for (int i = 0; i < count; ++i) {
    body(i);
    events[static_cast<std::size_t>(i) + 1].record(stream);
  }
  kernels::cuda::synchronize(stream);
  std::vector<double> seconds;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    seconds.push_back(events[i + 1].seconds_since(events[i]));
  }
  return seconds;
}

/// `launches` calls, over the sets in turn; nothing where the body cannot be captured.
std::optional<Graph> captured(const Work& work, int launches, Stream stream) {
  try {
    return std::optional<Graph>(std::in_place, stream, [&] {
      for (int i = 0; i < launches; ++i) work.launch(i % work.sets, stream);
    });
  } catch (const kernels::cuda::Error&) {
    forget_error();
    return std::nullopt;
  }
}

}  // namespace

Timing measure(const Work& work) {
  static const OwnedStream stream;
  const auto launch = [&](int i) { work.launch(i % work.sets, stream); };
  // The first calls load code and raise the clock; the fastest of the next ones says how many fit.
  timed(3, stream, launch);
  const std::vector<double> probe = timed(5, stream, launch);
  const double estimate = std::max(*std::min_element(probe.begin(), probe.end()), 1e-7);
  timed(times(warm_up_seconds, estimate, 1, 1000), stream, launch);

  Timing timing;
  timing.launches = 1;
  std::vector<double> seconds;
  if (estimate < short_seconds) {
    const int rounds = times(replay_seconds, estimate * work.sets, 1, most_launches);
    const int launches = std::min(rounds * work.sets, most_launches);
    if (const std::optional<Graph> graph = captured(work, launches, stream)) {
      timing.graph = true;
      timing.launches = launches;
      graph->launch(stream);
      seconds = timed(times(sampled_seconds, launches * estimate, 10, 200), stream,
                      [&](int) { graph->launch(stream); });
      for (double& x : seconds) x /= launches;
    }
  }
  if (!timing.graph) seconds = timed(times(sampled_seconds, estimate, 10, 200), stream, launch);
  timing.clock_hz = clock_hz(stream);

  timing.samples = static_cast<int>(seconds.size());
  timing.median = median(seconds);
  const auto interval = median_interval(seconds);
  timing.low = interval ? interval->low : timing.median;
  timing.high = interval ? interval->high : timing.median;
  timing.minimum = *std::min_element(seconds.begin(), seconds.end());
  return timing;
}

}  // namespace attnbench::bench
