#include "harness/measure/disturbed_round.hpp"

#include <cmath>

namespace attnbench::measure {
namespace {

/// Shares of CPU time above which the hypervisor, or others on the same cores, slow every sample.
constexpr double stolen_limit = 0.05;
constexpr double neighbours_limit = 0.10;
/// /proc/stat counts in ticks: less than this cannot be distinguished from zero.
constexpr double least_seconds = 0.05;

double lost_seconds(const Samples& samples) {
  double lost = 0;
  for (const Interference& beside : samples.beside) lost += beside.lost_seconds;
  return lost;
}

/// Adds what interfered with each sample, and the share of time lost to it.
void add_beside(result::TimingRound& timing, const Samples& samples, int threads) {
  std::vector<double>& shares = timing.samples_cpu_share.emplace();
  std::vector<std::int64_t>& switches = timing.samples_switches.emplace();
  double passed = 0;
  for (std::size_t i = 0; i < samples.beside.size(); ++i) {
    const Interference& beside = samples.beside[i];
    const double seconds = samples.seconds[i];
    passed += seconds;
    shares.push_back(seconds > 0 ? rounded_share(beside.cpu_seconds / (seconds * threads)) : 0.0);
    switches.push_back(beside.switches);
  }
  if (passed > 0) timing.lost_share = rounded_share(lost_seconds(samples) / passed);
  if (!samples.preempted.empty()) timing.preempted = samples.preempted;
}

}  // namespace

double rounded_share(double share) { return std::round(1e4 * share) / 1e4; }

void judge_interference(result::TimingRound& timing, Samples& samples, int threads,
                        const CpuShares& shares, const CpuShares& cores) {
  if (!samples.preempted.empty() && waited_for_own(lost_seconds(samples), shares)) {
    timing.own_threads_waited = true;
    samples.preempted.clear();
    samples.disturbed = false;
  }
  add_beside(timing, samples, threads);
  if (shares.known) {
    timing.stolen_share = rounded_share(shares.stolen);
    timing.others_share = rounded_share(shares.others);
  }
  if (samples.disturbed) {
    timing.disturbed_by = "preempted";
  } else if (shares.stolen > stolen_limit && shares.stolen_seconds > least_seconds) {
    timing.disturbed_by = "stolen";
  } else if (cores.others > neighbours_limit && cores.others_seconds > least_seconds) {
    timing.disturbed_by = "neighbours";
  } else if (is_crowded(timing.lost_share.value_or(0), shares)) {
    timing.disturbed_by = "crowded";
  }
  timing.disturbed = !timing.disturbed_by.empty();
}

}  // namespace attnbench::measure
