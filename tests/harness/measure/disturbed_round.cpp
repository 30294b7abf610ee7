#include "harness/measure/disturbed_round.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("threads that wait for one another are not disturbed by others", "[disturbance]") {
  measure::Samples samples;
  samples.seconds = {0.05, 0.05, 0.05, 0.05};
  samples.beside.assign(4, {0.1, 7, 0.1});  // two CPUs' worth of time, and as much waited
  samples.preempted = {0, 1, 2, 3};
  samples.disturbed = true;
  measure::CpuShares shares;
  shares.known = true;
  const measure::CpuShares no_neighbours;

  const auto judged = [&](const measure::CpuShares& others, const measure::CpuShares& cores) {
    measure::Samples judged_samples = samples;
    result::TimingRound timing;
    measure::judge_interference(timing, judged_samples, 6, others, cores);
    CHECK(timing.disturbed == judged_samples.disturbed);
    CHECK(timing.lost_share.value() == 2);
    CHECK(timing.samples_switches->size() == 4);
    CHECK(timing.samples_cpu_share->front() == Approx(0.1 / (0.05 * 6)).margin(1e-4));
    return timing;
  };
  const result::TimingRound own = judged(shares, no_neighbours);
  CHECK(own.disturbed_by.empty());
  CHECK(own.own_threads_waited);
  CHECK_FALSE(own.preempted.has_value());

  shares.others = 0.5;
  shares.others_seconds = 0.4;
  const result::TimingRound others = judged(shares, no_neighbours);
  CHECK(others.disturbed_by == "preempted");
  CHECK_FALSE(others.own_threads_waited);
  REQUIRE(others.preempted.has_value());
  CHECK(others.preempted->size() == 4);
  CHECK(others.others_share.value() == 0.5);
}

TEST_CASE("samples without waiting are disturbed by stolen time and by neighbours",
          "[disturbance]") {
  measure::Samples samples;
  samples.seconds = {0.05, 0.05, 0.05, 0.05};
  samples.beside.assign(4, {0.1, 0, 0});
  const auto disturbed_by = [&](double stolen, double neighbours, double seconds) {
    measure::CpuShares shares;
    shares.known = true;
    shares.stolen = stolen;
    shares.stolen_seconds = seconds;
    measure::CpuShares cores = shares;
    cores.others = neighbours;
    cores.others_seconds = seconds;
    result::TimingRound timing;
    measure::judge_interference(timing, samples, 2, shares, cores);
    return timing.disturbed_by;
  };
  CHECK(disturbed_by(0, 0, 1).empty());
  CHECK(disturbed_by(0.1, 0, 1) == "stolen");
  CHECK(disturbed_by(0, 0.2, 1) == "neighbours");
  CHECK(disturbed_by(0.1, 0.2, 0.01).empty());  // too little to be told from the clock's steps
}
