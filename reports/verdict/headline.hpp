// The answer of a table that ranks, in one sentence that says no more than intervals, seeds and
// missing competitors allow.
#pragma once

#include <string>

#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

/// Of times, at the place where `last` compares them; `ranking` has its rows.
std::string time_headline(const Answer& answer, const Fastest& last, const Ranking& ranking);

/// Of what was learned; the answer has accuracies.
std::string quality_headline(const Answer& answer);

}  // namespace attnbench::reports::verdict
