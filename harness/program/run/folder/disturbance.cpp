#include "harness/program/run/folder/disturbance.hpp"

#include <algorithm>

#include "core/text/format.hpp"

namespace attnbench::run {
namespace {

/// How much slower than usual the machine may calibrate. Clocks wander by less; another thread on
/// the same core, or a throttled clock, costs more.
constexpr double slow_factor = 1.25;
constexpr double widest_factor = 2;
/// A training is disturbed if its threads waited longer than this share of its wall time.
constexpr double training_lost_share = 0.05;

constexpr const char* advice =
    ": measure it again when the machine is quiet (attnbench run --resume RUN --retry disturbed)";

const std::map<std::string, std::string>& sentences() {
  static const std::map<std::string, std::string> known{
      {"preempted", "other processes took the CPU from"},
      {"stolen", "the hypervisor took the CPU from"},
      {"neighbours", "other processes worked on the same cores beside"},
      {"crowded", "other processes kept most CPUs busy during"},
      {"slow", "the machine ran slower than in the rest of the run during"}};
  return known;
}

/// The most frequent cause among the disturbed rounds.
std::string main_cause(const std::vector<result::TimingRound>& rounds) {
  std::map<std::string, int> counts;
  for (const result::TimingRound& round : rounds) {
    if (round.disturbed) ++counts[disturbed_by(round, 0)];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto found = most == counts.end() ? sentences().end() : sentences().find(most->first);
  return found == sentences().end() ? sentences().at("preempted") : found->second;
}

/// Appends the calibrations of one cell's rounds.
void collect_calibrations(const std::vector<result::RoundRecord>& rounds,
                          std::vector<double>& calibrations) {
  for (const result::RoundRecord& record : rounds) {
    for (const auto& [what, timing] : record.measured.timing) {
      const double seconds = timing.calibration_seconds.value_or(0);
      if (timing.samples_cpu_share && seconds > 0) calibrations.push_back(seconds);
    }
  }
}

}  // namespace

double usual_calibration(const std::map<std::string, std::vector<result::RoundRecord>>& records) {
  std::vector<double> calibrations;
  for (const auto& [id, rounds] : records) collect_calibrations(rounds, calibrations);
  if (calibrations.empty()) return 0;
  const auto quartile =
      calibrations.begin() + static_cast<std::ptrdiff_t>((calibrations.size() - 1) / 4);
  std::nth_element(calibrations.begin(), quartile, calibrations.end());
  return *quartile;
}

std::string disturbed_by(const result::TimingRound& timing, double usual) {
  if (timing.disturbed) return timing.disturbed_by.empty() ? "preempted" : timing.disturbed_by;
  const bool on_cpu = timing.samples_cpu_share.has_value();
  const bool slow = timing.calibration_seconds.value_or(0) > slow_factor * usual;
  return on_cpu && usual > 0 && slow ? "slow" : "";
}

bool enough_rounds(std::size_t counted, std::size_t all) {
  return counted > 0 && 2 * counted >= all;
}

bool too_wide(double low, double median, double high) {
  return high > widest_factor * median || median > widest_factor * low;
}

std::string disturbance(const std::map<std::string, result::Timing>& timing) {
  for (const auto& [what, one] : timing) {
    const std::size_t all = one.rounds.size();
    const std::size_t disturbed = one.disturbed_rounds();
    if (!enough_rounds(all - disturbed, all)) {
      return main_cause(one.rounds) + " " + std::to_string(disturbed) + " of " +
             std::to_string(all) + (all == 1 ? " round" : " rounds") + " of " + what + advice;
    }
    if (too_wide(one.low_seconds, one.median_seconds, one.high_seconds)) {
      return what + " took from " + text::human_seconds(one.low_seconds) + " to " +
             text::human_seconds(one.high_seconds) + ", too wide for its median to mean anything" +
             advice;
    }
  }
  return "";
}

std::string search_disturbance(std::size_t disturbed, std::size_t all) {
  if (enough_rounds(all - disturbed, all)) return "";
  return sentences().at("preempted") + " " + std::to_string(disturbed) + " of " +
         std::to_string(all) + (all == 1 ? " round" : " rounds") + " of the search" + advice;
}

bool disturbed_training(const result::Measured& measured) {
  return measured.training && measured.lost_share.value_or(0) > training_lost_share;
}

bool is_disturbed(const result::Measured& measured) {
  const bool timed =
      std::any_of(measured.timing.begin(), measured.timing.end(),
                  [](const auto& one) { return !disturbed_by(one.second, 0).empty(); });
  return timed || (measured.crossover && result::is_disturbed(*measured.crossover));
}

}  // namespace attnbench::run
