#include "harness/measure/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "core/statistics.hpp"

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
  for (int calls = 0;
       calls < rule.cold_calls && stopwatch.cold() && stopwatch.now() - start < rule.cold_seconds;
       ++calls) {
    if (prepare) prepare();
    stopwatch.time(body);
  }
}

/// Adds a sample and its interference. Returns whether the sample counts.
bool add(Samples& samples, const Stopwatch& stopwatch, double seconds) {
  samples.seconds.push_back(seconds);
  const std::optional<Interference> beside = stopwatch.interference();
  if (!beside) return true;
  samples.beside.push_back(*beside);
  if (!is_preempted(*beside, seconds)) return true;
  samples.preempted.push_back(samples.seconds.size() - 1);
  return false;
}

}  // namespace

std::vector<double> Samples::counted() const {
  if (disturbed || preempted.empty()) return seconds;
  std::vector<double> clean;
  auto left_out = preempted.begin();
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (left_out != preempted.end() && *left_out == i) {
      ++left_out;
    } else {
      clean.push_back(seconds[i]);
    }
  }
  return clean;
}

bool enough_clean(std::size_t clean, std::size_t all, int min_samples) {
  if (clean == 0 || 4 * clean < all) return false;
  return clean >= static_cast<std::size_t>(std::max(1, min_samples)) || 2 * clean >= all;
}

Samples sample(Stopwatch& stopwatch, const SamplingRule& rule, const std::function<void()>& body,
               const std::function<void()>& prepare) {
  Samples samples;
  const double begin = stopwatch.now();
  warm_up(stopwatch, rule, body, prepare);
  const std::size_t most = static_cast<std::size_t>(std::max(1, rule.max_samples));
  std::size_t next_test = static_cast<std::size_t>(std::max(1, rule.min_samples));
  std::vector<double> clean;
  const double start = stopwatch.now();
  samples.warm_up_seconds = start - begin;
  while (samples.stop.empty()) {
    if (prepare) prepare();
    const double seconds = stopwatch.time(body);
    const bool counts = add(samples, stopwatch, seconds);
    if (counts) clean.push_back(seconds);
    const double passed = stopwatch.now() - start;
    const std::size_t all = samples.seconds.size();
    const bool enough = enough_clean(clean.size(), all, rule.min_samples);
    if (counts && clean.size() == next_test) {
      next_test += std::max<std::size_t>(1, next_test / 2);
      if (enough && passed >= rule.min_seconds && narrow_enough(clean, rule.relative_interval)) {
        samples.stop = "interval";
      }
    }
    const double patience = enough ? 1 : max_patience;
    if (samples.stop.empty() && passed >= patience * rule.max_seconds) samples.stop = "time";
    const bool full = clean.size() >= most || all >= max_patience * most;
    if (samples.stop.empty() && full) samples.stop = "samples";
    samples.disturbed = !enough;
  }
  return samples;
}

}  // namespace attnbench::measure
