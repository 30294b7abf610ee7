#include "harness/measure/pairs.hpp"

#include <algorithm>
#include <cmath>

namespace attnbench::measure {
namespace {

double timed(Stopwatch& stopwatch, const PairedBody& body) {
  if (body.before) body.before();
  return stopwatch.time(body.call);
}

/// In logarithms, where twice as fast and half as fast are equally far from equal.
std::vector<double> log_ratios(const Pairs& pairs) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < pairs.first_seconds.size(); ++i) {
    ratios.push_back(std::log(pairs.second_seconds[i] / pairs.first_seconds[i]));
  }
  return ratios;
}

std::string verdict_of(const Pairs& pairs, const SamplingRule& rule) {
  const std::optional<Interval> interval = ratio_interval(pairs);
  if (!interval) return "";
  if (interval->low > 1 || interval->high < 1) return "decided";
  const double reach = 1 + rule.relative_interval;
  return interval->low > 1 / reach && interval->high < reach ? "equal" : "";
}

}  // namespace

Pairs sample_pairs(Stopwatch& stopwatch, const SamplingRule& rule, const PairedBody& first,
                   const PairedBody& second) {
  const double begin = stopwatch.now();
  do {
    timed(stopwatch, first);
    timed(stopwatch, second);
  } while (stopwatch.now() - begin < rule.warmup_seconds);
  Pairs pairs;
  const auto most = static_cast<std::size_t>(std::max(1, rule.max_samples));
  std::size_t next_look = least_pairs;
  const double start = stopwatch.now();
  while (pairs.stop.empty()) {
    const std::size_t n = pairs.first_seconds.size() + 1;
    if (n % 2 == 1) pairs.first_seconds.push_back(timed(stopwatch, first));
    pairs.second_seconds.push_back(timed(stopwatch, second));
    if (n % 2 == 0) pairs.first_seconds.push_back(timed(stopwatch, first));
    if (n == next_look) {
      next_look += n / 2;
      pairs.stop = verdict_of(pairs, rule);
    }
    const bool late = stopwatch.now() - start >= rule.max_seconds;
    if (pairs.stop.empty() && late && n >= least_pairs) pairs.stop = "time";
    if (pairs.stop.empty() && n >= most) pairs.stop = "samples";
  }
  return pairs;
}

double ratio_median(const Pairs& pairs) { return std::exp(median(log_ratios(pairs))); }

std::optional<Interval> ratio_interval(const Pairs& pairs) {
  const std::optional<Interval> logs = median_interval(log_ratios(pairs), pair_confidence);
  if (!logs) return std::nullopt;
  return Interval{std::exp(logs->low), std::exp(logs->high)};
}

}  // namespace attnbench::measure
