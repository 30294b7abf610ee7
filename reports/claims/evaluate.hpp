// Whether a result shows what a paper claims.
#pragma once

#include <string>
#include <vector>

#include "core/result/document.hpp"
#include "reports/claims/claim.hpp"

namespace attnbench::reports::claims {

/// seen: the numbers are within the claim's bounds with all of their interval. opposite: outside
/// with all of it, and at the paper's size where the claim gives one. undecided: intervals overlap,
/// sizes are too small to refute, one seed alone, trainings that have not converged, cells that are
/// disturbed or missing. not_run: nothing was measured for it.
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

/// The evidence of a claim that has a predicate. Throws UsageError naming the claim where it does
/// not fit the result: a setting or metric that is not there, a quantity that selects several
/// cells.
Evidence evaluate(const PaperClaim& claim, const result::Result& result);

/// All that is said of evidence beside its outcome: leaning, reason, numbers, size.
std::string found_words(const Evidence& evidence);

struct EvaluatedClaim {
  PaperClaim claim;
  Evidence evidence;
};

/// Those of `claims` that have a predicate and are about the result's suite. One that does not fit
/// the result, which may be of a suite as somebody changed it, was not run, with the reason.
std::vector<EvaluatedClaim> evaluate_all(const std::vector<PaperClaim>& claims,
                                         const result::Result& result);

}  // namespace attnbench::reports::claims
