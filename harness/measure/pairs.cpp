#include "harness/measure/pairs.hpp"

#include <algorithm>
#include <cmath>

namespace attnbench::measure {
namespace {

double timed(Stopwatch& stopwatch, const PairedBody& body) {
  if (body.before) body.before();
  return stopwatch.time(body.call);
}

/// Times the next pair, and marks it if a side was preempted. Returns whether it is clean.
bool add_pair(Stopwatch& stopwatch, const PairedBody& first, const PairedBody& second,
              Pairs& pairs) {
  bool clean = true;
  const auto side = [&](const PairedBody& body, std::vector<double>& seconds) {
    seconds.push_back(timed(stopwatch, body));
    const std::optional<Interference> beside = stopwatch.interference();
    if (!beside) return;
    pairs.lost_seconds += beside->lost_seconds;
    clean = clean && !is_preempted(*beside, seconds.back());
  };
  const bool in_order = pairs.first_seconds.size() % 2 == 0;
  if (in_order) side(first, pairs.first_seconds);
  side(second, pairs.second_seconds);
  if (!in_order) side(first, pairs.first_seconds);
  if (!clean) pairs.preempted.push_back(pairs.first_seconds.size() - 1);
  return clean;
}

/// As logarithms, in which twice as fast and half as fast are equally far from equal.
std::vector<double> log_ratios(const Pairs& pairs) {
  std::vector<double> ratios;
  auto left_out = pairs.preempted.begin();
  for (std::size_t i = 0; i < pairs.first_seconds.size(); ++i) {
    if (pairs.clean() > 0 && left_out != pairs.preempted.end() && *left_out == i) {
      ++left_out;
      continue;
    }
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

bool is_short(Stopwatch& stopwatch, const PairedBody& body) {
  double seconds = 0;
  for (int call = 0; call < 3; ++call) {  // the first ones also load what they need
    if (body.before) body.before();
    seconds = stopwatch.time(body.call);
  }
  return seconds <= recorded_below_seconds;
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
    const bool counts = add_pair(stopwatch, first, second, pairs);
    const std::size_t clean = pairs.clean();
    const std::size_t all = pairs.first_seconds.size();
    const bool enough = enough_clean(clean, all, static_cast<int>(least_pairs));
    if (counts && clean == next_look) {
      next_look += clean / 2;
      if (enough) pairs.stop = verdict_of(pairs, rule);
    }
    const bool decidable = enough && clean >= least_pairs;
    const double passed = stopwatch.now() - start;
    const bool late = passed >= rule.max_seconds;
    const bool hopeless =
        passed >= max_patience * rule.max_seconds && all >= max_patience * least_pairs;
    const bool full = clean >= most || all >= max_patience * most;
    if (pairs.stop.empty() && late && decidable) pairs.stop = "time";
    if (pairs.stop.empty() && full) pairs.stop = "samples";
    if (pairs.stop.empty() && hopeless && !decidable) pairs.stop = "disturbed";
    if (pairs.stop == "samples" && !decidable && !pairs.preempted.empty()) {
      pairs.stop = "disturbed";
    }
  }
  return pairs;
}

double ratio_median(const Pairs& pairs) { return std::exp(median(log_ratios(pairs))); }

std::optional<Interval> ratio_interval(const Pairs& pairs) {
  if (pairs.stop == "disturbed" || pairs.clean() == 0) return std::nullopt;
  const std::optional<Interval> logs = median_interval(log_ratios(pairs), pair_confidence);
  if (!logs) return std::nullopt;
  return Interval{std::exp(logs->low), std::exp(logs->high)};
}

Recording record_if_short(Stopwatch& stopwatch, const PairedBody& body, bool recordable,
                          const Recorder& recorder) {
  Recording recording;
  if (!recordable) {
    if (!is_short(stopwatch, body)) return recording;
    if (body.before) {
      recording.why = "what comes before each call cannot be recorded with it";
      return recording;
    }
  }
  recording.play = recorder(body, recording.why);
  if (!recording.play && recording.why.empty()) recording.why = "no reason given";
  return recording;
}

}  // namespace attnbench::measure
