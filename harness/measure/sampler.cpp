#include "harness/measure/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "harness/measure/statistics.hpp"

namespace attnbench::measure {
namespace {

bool narrow_enough(const std::vector<double>& seconds, double relative_interval) {
  const std::optional<Interval> interval = median_interval(seconds);
  if (!interval) return false;
  const double middle = median(seconds);
  const double reach = std::max(interval->high - middle, middle - interval->low);
  return reach <= relative_interval * middle;
}

void warm_up(Stopwatch& stopwatch, const SamplingRule& rule, const std::function<void()>& body,
             const std::function<void()>& prepare) {
  const double start = stopwatch.now();
  for (int calls = 0;; ++calls) {
    const double passed = stopwatch.now() - start;
    const int least = passed > rule.max_seconds ? 1 : 2;
    if (calls >= least && passed >= rule.warmup_seconds) break;
    if (prepare) prepare();
    stopwatch.time(body);
  }
  for (int calls = 0; calls < rule.cold_calls && stopwatch.cold() &&
                      stopwatch.now() - start < rule.cold_seconds;
       ++calls) {
    if (prepare) prepare();
    stopwatch.time(body);
  }
}

}  // namespace

Samples sample(Stopwatch& stopwatch, const SamplingRule& rule, const std::function<void()>& body,
               const std::function<void()>& prepare) {
  warm_up(stopwatch, rule, body, prepare);
  Samples samples;
  const std::size_t most = static_cast<std::size_t>(std::max(1, rule.max_samples));
  std::size_t next_test = static_cast<std::size_t>(std::max(1, rule.min_samples));
  const double start = stopwatch.now();
  while (samples.stop.empty()) {
    if (prepare) prepare();
    samples.seconds.push_back(stopwatch.time(body));
    const double passed = stopwatch.now() - start;
    const std::size_t n = samples.seconds.size();
    if (n == next_test) {
      next_test += std::max<std::size_t>(1, n / 2);
      if (passed >= rule.min_seconds && narrow_enough(samples.seconds, rule.relative_interval)) {
        samples.stop = "interval";
      }
    }
    if (samples.stop.empty() && passed >= rule.max_seconds) samples.stop = "time";
    if (samples.stop.empty() && n >= most) samples.stop = "samples";
  }
  return samples;
}

}  // namespace attnbench::measure
