#include "reports/claims/evidence.hpp"

#include "reports/claims/values.hpp"

namespace attnbench::reports::claims {

const char* to_string(ClaimOutcome outcome) {
  switch (outcome) {
    case ClaimOutcome::seen:
      return "seen";
    case ClaimOutcome::opposite:
      return "opposite seen";
    case ClaimOutcome::undecided:
      return "cannot tell";
    case ClaimOutcome::not_run:
      break;
  }
  return "not run";
}

const char* to_string(Leaning leaning) {
  switch (leaning) {
    case Leaning::towards:
      return "so far as claimed";
    case Leaning::against:
      return "so far the opposite";
    case Leaning::none:
      break;
  }
  return "";
}

std::string interval_text(const Estimate& estimate) {
  if (estimate.low == estimate.high) return number_text(estimate.median);
  return number_text(estimate.median) + " (" + number_text(estimate.low) + " to " +
         number_text(estimate.high) + ")";
}

Evidence judged(const Estimate& estimate, const Bounds& bounds, bool strict) {
  const auto below = [strict](double a, double b) { return strict ? a < b : a <= b; };
  const auto inside = [&](double low, double high) {
    return (!bounds.low || below(*bounds.low, low)) && (!bounds.high || below(high, *bounds.high));
  };
  const bool outside = (bounds.high && !below(estimate.low, *bounds.high)) ||
                       (bounds.low && !below(*bounds.low, estimate.high));
  Evidence evidence;
  evidence.leaning = inside(estimate.median, estimate.median) ? Leaning::towards : Leaning::against;
  evidence.outcome = ClaimOutcome::undecided;
  if (outside) {
    evidence.outcome = ClaimOutcome::opposite;
  } else if (inside(estimate.low, estimate.high)) {
    evidence.outcome = ClaimOutcome::seen;
  } else {
    evidence.reason = "the interval reaches across the bound";
  }
  return evidence;
}

Evidence undecided(const std::string& reason, Leaning leaning) {
  Evidence evidence;
  evidence.outcome = ClaimOutcome::undecided;
  evidence.leaning = leaning;
  evidence.reason = reason;
  return evidence;
}

Evidence combined(const std::vector<Evidence>& parts) {
  Evidence all;
  all.outcome = ClaimOutcome::seen;
  bool against = false, pointing = true;
  for (const Evidence& one : parts) {
    against = against || one.outcome == ClaimOutcome::opposite || one.leaning == Leaning::against;
    pointing = pointing && one.leaning != Leaning::none;
    if (one.outcome == ClaimOutcome::opposite || all.outcome == ClaimOutcome::opposite) {
      all.outcome = ClaimOutcome::opposite;
    } else if (one.outcome != ClaimOutcome::seen) {
      all.outcome = all.outcome == ClaimOutcome::undecided ? ClaimOutcome::undecided : one.outcome;
    }
    if (!one.found.empty()) all.found += (all.found.empty() ? "" : "; ") + one.found;
    if (!one.reason.empty() && all.reason.find(one.reason) == std::string::npos) {
      all.reason += (all.reason.empty() ? "" : "; ") + one.reason;
    }
  }
  if (against || pointing) all.leaning = against ? Leaning::against : Leaning::towards;
  return all;
}

std::string found_words(const Evidence& evidence) {
  std::string words;
  for (const std::string& part :
       {std::string(to_string(evidence.leaning)), evidence.reason, evidence.found, evidence.size}) {
    if (!part.empty()) words += (words.empty() ? "" : "; ") + part;
  }
  return words;
}

}  // namespace attnbench::reports::claims
