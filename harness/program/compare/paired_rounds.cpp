#include "harness/program/compare/paired_rounds.hpp"

#include <algorithm>
#include <cmath>

#include "core/statistics.hpp"
#include "reports/tables/least.hpp"

namespace attnbench::compare {
namespace {

/// The rounds of one timing by number: medians of those that count, and which were disturbed and
/// not measured again.
struct NumberedRounds {
  std::map<std::int64_t, double> seconds;
  std::set<std::int64_t> disturbed;

  NumberedRounds(const result::Timing* timing, const RoundRange& range) {
    if (timing == nullptr) return;
    for (const result::TimingRound& round : timing->rounds) {
      const std::int64_t number = round.round.value_or(0);
      if (!range.holds(number)) continue;
      if (round.disturbed) {
        disturbed.insert(number);
      } else {
        seconds[number] = round.median_seconds;
      }
    }
    for (const auto& [number, median] : seconds) disturbed.erase(number);
  }
  bool has(std::int64_t number) const {
    return seconds.contains(number) || disturbed.contains(number);
  }
};

/// The least sample of each round by number.
std::map<std::int64_t, double> least_by_number(const result::Timing* timing,
                                               const RoundRange& range) {
  std::map<std::int64_t, double> least;
  if (timing == nullptr) return least;
  for (const result::TimingRound& round : timing->rounds) {
    const std::int64_t number = round.round.value_or(0);
    if (!range.holds(number)) continue;
    const double seconds = reports::least_seconds(round);
    const auto [found, fresh] = least.emplace(number, seconds);
    if (!fresh) found->second = std::min(found->second, seconds);
  }
  return least;
}

}  // namespace

PairedRounds paired_rounds_of(const result::Timing* base_timing,
                              const result::Timing* changed_timing,
                              const result::Timing* control_timing, const RoundRange& range) {
  const NumberedRounds base(base_timing, range);
  const NumberedRounds changed(changed_timing, range);
  const NumberedRounds control(control_timing, range);
  PairedRounds rounds;
  for (const std::int64_t number : base.disturbed) rounds.left_out += changed.has(number) ? 1 : 0;
  for (const auto& [number, before] : base.seconds) {
    if (!changed.has(number)) continue;
    if (changed.disturbed.contains(number) || control.disturbed.contains(number)) {
      ++rounds.left_out;
      continue;
    }
    const double after = changed.seconds.at(number);
    rounds.base.push_back(before);
    rounds.changed.push_back(after);
    rounds.logs.push_back(std::log(after / before));
    const auto again = control.seconds.find(number);
    if (again != control.seconds.end()) rounds.control.push_back(std::log(again->second / before));
  }
  return rounds;
}

LeastOfRounds least_of_rounds(const result::Timing* base_timing,
                              const result::Timing* changed_timing,
                              const result::Timing* control_timing, const RoundRange& range) {
  const auto changed = least_by_number(changed_timing, range);
  const auto control = least_by_number(control_timing, range);
  LeastOfRounds rounds;
  for (const auto& [number, before] : least_by_number(base_timing, range)) {
    const auto after = changed.find(number);
    if (after == changed.end()) continue;
    rounds.base.push_back(before);
    rounds.changed.push_back(after->second);
    rounds.logs.push_back(std::log(after->second / before));
    const auto again = control.find(number);
    if (again != control.end()) rounds.control.push_back(std::log(again->second / before));
  }
  return rounds;
}

bool has_round_in(const result::Timing* timing, const RoundRange& range) {
  return timing != nullptr && std::any_of(timing->rounds.begin(), timing->rounds.end(),
                                          [&range](const result::TimingRound& round) {
                                            return range.holds(round.round.value_or(0));
                                          });
}

std::optional<Control> ratio_of(const std::vector<double>& logs, double confidence) {
  const auto interval = median_interval(logs, confidence);
  if (!interval) return std::nullopt;
  return Control{std::exp(median(logs)), std::exp(interval->low), std::exp(interval->high)};
}

}  // namespace attnbench::compare
