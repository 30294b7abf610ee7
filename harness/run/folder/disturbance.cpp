#include "harness/run/folder/disturbance.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/format.hpp"

namespace attnbench::result {
namespace {

/// How much slower than usual the machine may calibrate. Clocks wander by less; another thread on
/// the same core, or a throttled clock, costs more.
constexpr double slow_factor = 1.25;
constexpr double widest_factor = 2;
/// Of a training's CPU time, what it may have waited besides before its time is called disturbed.
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

/// What disturbed most of the rounds that were.
std::string main_cause(const Json& rounds) {
  std::map<std::string, int> counts;
  for (const Json& round : rounds) {
    if (round.value("disturbed", false)) ++counts[round.value("disturbed_by", "preempted")];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto found = most == counts.end() ? sentences().end() : sentences().find(most->first);
  return found == sentences().end() ? sentences().at("preempted") : found->second;
}

/// Of one cell.
void collect_calibrations(const std::vector<Json>& rounds, std::vector<double>& calibrations) {
  for (const Json& record : rounds) {
    const Json measured = record.value("measured", Json::object());
    if (!measured.is_object() || !measured.contains("timing")) continue;
    for (const auto& [what, timing] : measured["timing"].items()) {
      const double seconds = timing.value("calibration_seconds", 0.0);
      if (timing.contains("samples_cpu_share") && seconds > 0) calibrations.push_back(seconds);
    }
  }
}

}  // namespace

double usual_calibration(const std::map<std::string, std::vector<Json>>& records) {
  std::vector<double> calibrations;
  for (const auto& [id, rounds] : records) collect_calibrations(rounds, calibrations);
  if (calibrations.empty()) return 0;
  const auto quartile =
      calibrations.begin() + static_cast<std::ptrdiff_t>((calibrations.size() - 1) / 4);
  std::nth_element(calibrations.begin(), quartile, calibrations.end());
  return *quartile;
}

std::string disturbed_by(const Json& timing, double usual) {
  if (timing.value("disturbed", false)) return timing.value("disturbed_by", "preempted");
  const bool on_cpu = timing.contains("samples_cpu_share");
  const bool slow = timing.value("calibration_seconds", 0.0) > slow_factor * usual;
  return on_cpu && usual > 0 && slow ? "slow" : "";
}

bool disturbed_search(const Json& crossover) {
  std::size_t tried = 0;
  std::size_t disturbed = 0;
  for (const Json& length : crossover.value("lengths", Json::array())) {
    if (!length.contains("stop")) continue;
    ++tried;
    disturbed += length["stop"] == "disturbed" ? 1 : 0;
  }
  return 2 * disturbed > tried;
}

bool enough_rounds(std::size_t counted, std::size_t all) {
  return counted > 0 && 2 * counted >= all;
}

bool too_wide(double low, double median, double high) {
  return high > widest_factor * median || median > widest_factor * low;
}

std::string disturbance(const Json& timing) {
  for (const auto& [what, one] : timing.items()) {
    const Json& rounds = one["rounds"];
    const auto disturbed = std::count_if(rounds.begin(), rounds.end(), [](const Json& round) {
      return round.value("disturbed", false);
    });
    const auto counted = rounds.size() - static_cast<std::size_t>(disturbed);
    if (!enough_rounds(counted, rounds.size())) {
      return main_cause(rounds) + " " + std::to_string(disturbed) + " of " +
             std::to_string(rounds.size()) + (rounds.size() == 1 ? " round" : " rounds") + " of " +
             what + advice;
    }
    const double low = one["low_seconds"];
    const double high = one["high_seconds"];
    if (too_wide(low, one["median_seconds"], high)) {
      return what + " took from " + human_seconds(low) + " to " + human_seconds(high) +
             ", too wide for its median to mean anything" + advice;
    }
  }
  return "";
}

std::string search_disturbance(std::size_t disturbed, std::size_t all) {
  if (enough_rounds(all - disturbed, all)) return "";
  return sentences().at("preempted") + " " + std::to_string(disturbed) + " of " +
         std::to_string(all) + (all == 1 ? " round" : " rounds") + " of the search" + advice;
}

bool disturbed_training(const Json& measured) {
  return measured.contains("training") && measured.value("lost_share", 0.0) > training_lost_share;
}

}  // namespace attnbench::result
