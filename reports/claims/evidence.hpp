// What was found of a claim: numbers in words, and how they lie to what is claimed.
#pragma once

#include <string>
#include <vector>

#include "core/statistics.hpp"
#include "reports/claims/claim.hpp"

namespace attnbench::reports::claims {

/// seen: the numbers are within the claim's bounds with all of their interval. opposite: outside
/// with all of it, and at the paper's size where the claim gives one. undecided: intervals overlap,
/// sizes are too small to refute, one seed alone, trainings that have not converged or never left
/// chance, cells that are disturbed or missing. not_run: nothing was measured for it.
enum class ClaimOutcome { seen, opposite, undecided, not_run };
/// "seen", "opposite seen", "cannot tell", "not run".
const char* to_string(ClaimOutcome outcome);

/// Where medians and means point, of what is undecided.
enum class Leaning { none, towards, against };
/// "", "so far as claimed", "so far the opposite".
const char* to_string(Leaning leaning);

struct Evidence {
  ClaimOutcome outcome = ClaimOutcome::not_run;
  Leaning leaning = Leaning::none;
  std::string found;   ///< the numbers, in words; empty where there are none
  std::string reason;  ///< why it is undecided or was not run
  std::string size;    ///< "length 4,096 of 16,000"; empty where the claim gives no sizes
};

/// How an estimate lies to bounds, which themselves are inside unless `strict`.
Evidence judged(const Estimate& estimate, const Bounds& bounds, bool strict = false);

Evidence undecided(const std::string& reason, Leaning leaning = Leaning::none);

/// All of the parts: the opposite of one is the opposite of all; what was not run is not known.
Evidence combined(const std::vector<Evidence>& parts);

/// All that is said beside the outcome: leaning, reason, numbers, size.
std::string found_words(const Evidence& evidence);

/// "0.346 (0.214 to 0.536)"; the number alone where it is exact.
std::string interval_text(const Estimate& estimate);

}  // namespace attnbench::reports::claims
