// The rule that marks a round as disturbed: preempted, stolen, neighbours or crowded. That it was
// slow is known only beside the other rounds of a run, whose combining says so.
#pragma once

#include "core/result/record.hpp"
#include "harness/measure/interference.hpp"
#include "harness/measure/sampler.hpp"

namespace attnbench::measure {

/// Writes into `timing` the interference with the samples of `threads` threads, and what disturbed
/// them, if anything did. `shares` are of the CPUs that these ran on, `cores` of those that share a
/// core with them. Samples that waited for threads of their own are no longer marked as preempted.
void judge_interference(result::TimingRound& timing, Samples& samples, int threads,
                        const CpuShares& shares, const CpuShares& cores);

/// A share to four places: more would only make results larger.
double rounded_share(double share);

}  // namespace attnbench::measure
