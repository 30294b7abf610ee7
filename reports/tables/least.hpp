// The least sample: what is shown of a disturbed time, whose median may be many times too long.
#pragma once

#include <string>

#include "core/result/record.hpp"
#include "core/text/format.hpp"

namespace attnbench::reports {

/// The least sample of a round; its median where its samples are not there.
double least_seconds(const result::TimingRound& round);
/// The least sample over the rounds.
double least_seconds(const result::Timing& timing);

/// A disturbed cell's time as the table that ranks shows it, below which the disturbed are named:
/// "least 203 µs". Not "at least": other programs may have slowed every sample.
std::string least_text(double least, text::Letters letters);
/// The same where nothing else says why: "least 203 µs, disturbed".
std::string disturbed_text(double least, text::Letters letters);

}  // namespace attnbench::reports
