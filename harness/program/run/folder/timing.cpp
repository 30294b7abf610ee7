#include "harness/program/run/folder/timing.hpp"

#include <algorithm>

#include "core/statistics.hpp"
#include "harness/program/run/folder/disturbance.hpp"

namespace attnbench::run {
namespace {

/// The undisturbed rounds; all rounds if too few are undisturbed.
std::vector<result::TimingRound> counted_of(const std::vector<result::TimingRound>& all) {
  std::vector<result::TimingRound> counted;
  std::copy_if(all.begin(), all.end(), std::back_inserter(counted),
               [](const result::TimingRound& round) { return !round.disturbed; });
  return enough_rounds(counted.size(), all.size()) ? counted : all;
}

/// A round on a machine that ran slower than the cell's median round is scaled down by as much.
/// Nothing where the calibration of any round is not known.
void add_calibrated(result::Timing& timing, const std::vector<result::TimingRound>& rounds) {
  std::vector<double> calibrations;
  for (const result::TimingRound& round : rounds) {
    if (round.calibration_seconds.value_or(0) <= 0) return;
    calibrations.push_back(*round.calibration_seconds);
  }
  const double usual = attnbench::median(calibrations);
  std::vector<double> scaled;
  for (const result::TimingRound& round : rounds) {
    scaled.push_back(round.median_seconds * usual / *round.calibration_seconds);
  }
  const Spread spread = spread_of(scaled);
  timing.calibrated_median_seconds = spread.median;
  if (scaled.size() < 2) return;
  timing.calibrated_low_seconds = spread.low;
  timing.calibrated_high_seconds = spread.high;
}

result::Timing timing_of(std::vector<result::TimingRound> all) {
  const std::vector<result::TimingRound> rounds = counted_of(all);
  std::vector<double> medians;
  for (const result::TimingRound& round : rounds) medians.push_back(round.median_seconds);
  const Spread spread = spread_of(medians);
  result::Timing timing;
  timing.median_seconds = spread.median;
  timing.low_seconds = spread.low;
  timing.high_seconds = spread.high;
  timing.interval = spread.order ? "order" : "range";
  if (rounds.size() == 1) {  // the samples of the only round
    timing.low_seconds = rounds[0].low_seconds.value_or(spread.low);
    timing.high_seconds = rounds[0].high_seconds.value_or(spread.high);
    timing.interval = "samples";
  }
  add_calibrated(timing, rounds);
  timing.minimum_seconds = medians.front();
  for (const result::TimingRound& round : rounds) {
    for (const double sample : round.samples_seconds) {
      timing.minimum_seconds = std::min(*timing.minimum_seconds, sample);
    }
  }
  timing.rounds = std::move(all);
  timing.disturbed = !disturbance({{"", timing}}).empty();
  return timing;
}

/// Whether any timing of the round is disturbed, and with it the rates derived from its times.
bool any_disturbed(const result::Measured& measured, double usual_calibration) {
  return std::any_of(measured.timing.begin(), measured.timing.end(), [&](const auto& one) {
    return !disturbed_by(one.second, usual_calibration).empty();
  });
}

}  // namespace

std::map<std::string, result::Timing> timing_over(const std::vector<result::RoundRecord>& rounds,
                                                  double usual_calibration) {
  std::map<std::string, std::vector<result::TimingRound>> found;
  for (const result::RoundRecord& record : rounds) {
    if (!record.ok()) continue;
    for (const auto& [what, timing] : record.measured.timing) {
      result::TimingRound round = timing;
      round.round = record.round;
      if (!round.calibration_seconds) {
        round.calibration_seconds = record.measured.calibration_seconds;
      }
      if (const std::string cause = disturbed_by(round, usual_calibration); !cause.empty()) {
        round.disturbed = true;
        round.disturbed_by = cause;
      }
      found[what].push_back(std::move(round));
    }
  }
  std::map<std::string, result::Timing> timings;
  for (auto& [what, all] : found) timings[what] = timing_of(std::move(all));
  return timings;
}

Values metrics_over(const std::vector<result::RoundRecord>& rounds, double usual_calibration) {
  Values metrics;
  std::map<std::string, std::vector<double>> numbers;
  std::map<std::string, std::vector<double>> undisturbed;
  for (const result::RoundRecord& record : rounds) {
    if (!record.ok()) continue;
    const bool disturbed = any_disturbed(record.measured, usual_calibration);
    for (const auto& [name, value] : record.measured.metrics) {
      metrics.emplace(name, value);
      if (!value.is_number_float()) continue;
      numbers[name].push_back(value.get<double>());
      if (!disturbed) undisturbed[name].push_back(value.get<double>());
    }
  }
  for (const auto& [name, values] : numbers) {
    const auto counted = undisturbed.find(name);
    metrics[name] = attnbench::median(counted == undisturbed.end() ? values : counted->second);
  }
  return metrics;
}

}  // namespace attnbench::run
