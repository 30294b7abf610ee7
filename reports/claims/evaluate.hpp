// Whether a result shows what a paper claims.
#pragma once

#include <vector>

#include "core/result/document.hpp"
#include "reports/claims/claim.hpp"
#include "reports/claims/evidence.hpp"

namespace attnbench::reports::claims {

/// The evidence of a claim that has a predicate. Throws UsageError naming the claim where it does
/// not fit the result: a setting or metric that is not there, a quantity that selects several
/// cells.
Evidence evaluate(const PaperClaim& claim, const result::Result& result);

struct EvaluatedClaim {
  PaperClaim claim;
  Evidence evidence;
};

/// Those of `claims` that have a predicate and are about the result's suite. One that does not fit
/// the result, which may be of a suite as somebody changed it, was not run, with the reason.
std::vector<EvaluatedClaim> evaluate_all(const std::vector<PaperClaim>& claims,
                                         const result::Result& result);

}  // namespace attnbench::reports::claims
