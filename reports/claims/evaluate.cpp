#include "reports/claims/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "reports/claims/evidence.hpp"
#include "reports/claims/values.hpp"
#include "reports/tables/growth.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::claims {
namespace {

/// The evidence of a value that is not there.
Evidence missing(const Value& value) {
  Evidence evidence = undecided(value.missing);
  if (value.absent) evidence.outcome = ClaimOutcome::not_run;
  return evidence;
}

using Compare = std::function<Evidence(const Value& a, const Value& b)>;

// ---- two values

/// "at length 256: latte 590 µs, standard 1.98 ms"; each with its own place where they differ.
std::string pair_words(const Value& a, const Value& b) {
  if (a.place != b.place) {
    return a.name() + ": " + a.words() + ", " + b.name() + ": " + b.words();
  }
  return (a.place.empty() ? "" : "at " + a.place + ": ") + a.label + " " + a.words() + ", " +
         b.label + " " + b.words();
}

double quotient(double a, double b) {
  if (b == 0) return a == 0 ? 1 : std::numeric_limits<double>::infinity();
  return a / b;
}

Evidence compare_ratio(const Value& a, const Value& b, const Bounds& bounds, bool strict) {
  const Estimate ratio{quotient(a.estimate.median, b.estimate.median),
                       quotient(a.estimate.low, b.estimate.high),
                       quotient(a.estimate.high, b.estimate.low)};
  Evidence evidence = judged(ratio, bounds, strict);
  evidence.found = pair_words(a, b) + ": ratio " + interval_text(ratio);
  return evidence;
}

/// Why trainings tell nothing yet; empty where they do.
std::string untold(const std::vector<const Value*>& trained, bool same_seeds) {
  std::string reason = !same_seeds                          ? "not the same seeds"
                       : trained.front()->seeds.size() == 1 ? "one seed"
                                                            : "";
  const auto add = [&](const std::string& more) { reason += (reason.empty() ? "" : ", ") + more; };
  bool converged = true, none_learned = true;
  for (const Value* value : trained) {
    converged = converged && value->converged;
    none_learned = none_learned && value->at_chance > 0 && value->at_chance == value->seeds.size();
  }
  if (none_learned) add("never left chance");
  for (const Value* value : trained) {
    if (none_learned || value->at_chance == 0) continue;
    const std::size_t seeds = value->seeds.size();
    const std::string some =
        std::to_string(value->at_chance) + " of " + std::to_string(seeds) + " seeds of ";
    add((value->at_chance == seeds ? "" : some) + value->name() + " never left chance");
  }
  if (!converged) add("not converged");
  return reason;
}

/// The half width of the 95 % interval of the mean of two or more numbers, by Student's t.
double reach_of_mean(const std::vector<double>& numbers) {
  const auto count = static_cast<double>(numbers.size());
  const double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / count;
  double squares = 0;
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  return student_t(count - 1) * std::sqrt(squares / (count - 1) / count);
}

/// Differences between trainings of one seed, by Student's t.
Evidence compare_difference(const Value& a, const Value& b, const Bounds& bounds, bool strict) {
  const double mean = a.estimate.median - b.estimate.median;
  Estimate difference{mean, mean, mean};
  const bool same_seeds =
      std::equal(a.seeds.begin(), a.seeds.end(), b.seeds.begin(), b.seeds.end(),
                 [](const auto& x, const auto& y) { return x.first == y.first; });
  const std::string reason = untold({&a, &b}, same_seeds);
  const bool paired = same_seeds && a.seeds.size() > 1;
  if (paired) {
    std::vector<double> differences;
    for (auto x = a.seeds.begin(), y = b.seeds.begin(); x != a.seeds.end(); ++x, ++y) {
      differences.push_back(x->second - y->second);
    }
    const double reach = reach_of_mean(differences);
    difference = {mean, mean - reach, mean + reach};
  }
  Evidence evidence = judged(difference, bounds, strict);
  if (!reason.empty()) evidence = undecided(reason, evidence.leaning);
  evidence.found = pair_words(a, b) + ": difference " + interval_text(difference) +
                   (paired ? " over " + std::to_string(a.seeds.size()) + " seeds" : "");
  return evidence;
}

Compare smaller() {
  return [](const Value& a, const Value& b) {
    if (a.trained()) return compare_difference(a, b, {std::nullopt, 0.0}, true);
    return compare_ratio(a, b, {std::nullopt, 1.0}, true);
  };
}

// ---- quantities, once or along a setting

/// Throws UsageError where numbers of different kinds are compared.
void expect_same_kind(const std::vector<ClaimedQuantity>& quantities) {
  for (const ClaimedQuantity& quantity : quantities) {
    if (unit_of(quantity.of) == unit_of(quantities.front().of)) continue;
    throw UsageError("\"" + text::quotable(quantity.of) + "\" is compared with \"" +
                     text::quotable(quantities.front().of) + "\"");
  }
}

Evidence compare_values(const Value& a, const Value& b, const Compare& compare) {
  for (const Value* value : {&a, &b}) {
    if (!value->missing.empty()) return missing(*value);
  }
  return compare(a, b);
}

/// Holds at every value of the setting that both have. What does not is said; of what does, both
/// ends.
Evidence compare_lines(Cells& cells, const ClaimedQuantity& a, const ClaimedQuantity& b,
                       const std::string& along, const Compare& compare) {
  const auto first = cells.line(a, along), second = cells.line(b, along);
  std::vector<Evidence> parts;
  for (const auto& [place, value] : first) {
    const auto other = second.find(place);
    if (other != second.end()) parts.push_back(compare_values(value, other->second, compare));
  }
  if (parts.empty()) {
    Evidence evidence = undecided("there is no " + along + " at which both were measured");
    evidence.outcome = ClaimOutcome::not_run;
    return evidence;
  }
  const Evidence all = combined(parts);
  std::vector<Evidence> said;
  for (const Evidence& one : parts) {
    if (one.outcome != ClaimOutcome::seen) said.push_back(one);
  }
  if (said.empty()) said.push_back(parts.front());
  if (all.outcome == ClaimOutcome::seen && parts.size() > 1) said.push_back(parts.back());
  Evidence shown = combined(said);
  shown.outcome = all.outcome;
  shown.leaning = all.leaning;
  return shown;
}

Evidence compare_pair(Cells& cells, const ClaimedQuantity& a, const ClaimedQuantity& b,
                      const std::string& along, const Compare& compare) {
  if (!along.empty()) return compare_lines(cells, a, b, along, compare);
  return compare_values(cells.value(a), cells.value(b), compare);
}

Evidence compare_chain(Cells& cells, const Predicate& predicate) {
  std::vector<Evidence> parts;
  for (std::size_t i = 1; i < predicate.less.size(); ++i) {
    parts.push_back(
        compare_pair(cells, predicate.less[i - 1], predicate.less[i], predicate.along, smaller()));
  }
  return combined(parts);
}

// ---- lines

Evidence crossing_evidence(const verdict::CrossingStatement& crossing,
                           const std::optional<Bounds>& within) {
  using verdict::CrossingKind;
  Evidence evidence = undecided("");
  switch (crossing.crossing) {
    case CrossingKind::found: {
      const Estimate length{crossing.length, crossing.low.value_or(crossing.shortest),
                            crossing.high};
      if (within) evidence = judged(length, *within);
      if (!within) evidence.outcome = ClaimOutcome::seen;
      evidence.found = "from " + interval_text(length) + " on";
      break;
    }
    case CrossingKind::below:
      evidence.outcome = ClaimOutcome::seen;
      if (within && within->low) {
        const bool apart = crossing.shortest <= *within->low;
        evidence.outcome = apart ? ClaimOutcome::opposite : ClaimOutcome::undecided;
        evidence.reason = apart ? "" : "shorter ones would tell";
      }
      evidence.found = "at every length from " + number_text(crossing.shortest) + " to " +
                       number_text(crossing.longest);
      break;
    case CrossingKind::none:
    case CrossingKind::reverse:
      evidence.outcome = within && within->high && *within->high <= crossing.longest
                             ? ClaimOutcome::opposite
                             : ClaimOutcome::undecided;
      if (!within) evidence.outcome = ClaimOutcome::opposite;
      evidence.reason = evidence.outcome == ClaimOutcome::undecided ? "longer ones would tell" : "";
      evidence.found = "not up to " + number_text(crossing.longest);
      evidence.leaning = Leaning::against;
      break;
    case CrossingKind::several:
      evidence.reason = "the order changes more than once";
      break;
    case CrossingKind::undecided:
      evidence.reason = "intervals overlap at the greatest";
      break;
    case CrossingKind::missing:
      evidence.reason = "too few places have both times";
      break;
  }
  return evidence;
}

Evidence evaluate_crossing(Cells& cells, const Predicate& predicate) {
  const auto first = cells.line(predicate.crossing[0], predicate.along);
  const auto second = cells.line(predicate.crossing[1], predicate.along);
  std::vector<double> places, without;
  std::vector<verdict::Time> times, others;
  std::string reasons;
  for (const auto& [place, value] : first) {
    const auto other = second.find(place);
    if (other == second.end()) continue;
    if (value.trained()) throw UsageError("a crossing is one of times or bytes");
    if (value.missing.empty() && other->second.missing.empty()) {
      places.push_back(place);
      times.push_back(value.estimate);
      others.push_back(other->second.estimate);
    } else {
      without.push_back(place);
      const Value& gone = value.missing.empty() ? other->second : value;
      reasons += (reasons.empty() ? "" : "; ") + gone.missing;
    }
  }
  if (places.empty()) {
    return undecided(reasons.empty() ? "there is no " + predicate.along + " at which both are"
                                     : reasons);
  }
  const verdict::CrossingStatement crossing = verdict::cross(places, times, others, without);
  Evidence evidence = crossing_evidence(crossing, predicate.within);
  if (!reasons.empty()) evidence.reason += (evidence.reason.empty() ? "" : "; ") + reasons;
  const auto at = [&](const std::map<double, Value>& line, double place) {
    return line.at(place).words();
  };
  evidence.found += (evidence.found.empty() ? "" : "; ") + predicate.crossing[0].label +
                    " against " + predicate.crossing[1].label + " at " +
                    number_text(places.front()) + ": " + at(first, places.front()) + ", " +
                    at(second, places.front()) + "; at " + number_text(places.back()) + ": " +
                    at(first, places.back()) + ", " + at(second, places.back());
  return evidence;
}

/// The mean over seeds, by Student's t; or one number as it is.
Evidence evaluate_value(Cells& cells, const Predicate& predicate) {
  const Value value = cells.value(*predicate.value);
  if (!value.missing.empty()) return missing(value);
  Estimate estimate = value.estimate;
  if (value.seeds.size() > 1) {
    std::vector<double> numbers;
    for (const auto& [seed, number] : value.seeds) numbers.push_back(number);
    const double reach = reach_of_mean(numbers);
    estimate = {estimate.median, estimate.median - reach, estimate.median + reach};
  }
  Evidence evidence = judged(estimate, *predicate.within);
  const std::string reason = untold({&value}, true);
  if (!reason.empty()) evidence = undecided(reason, evidence.leaning);
  evidence.found = value.name() + ": " + interval_text(estimate);
  return evidence;
}

Evidence evaluate_slope(Cells& cells, const Predicate& predicate) {
  std::vector<GrowthPoint> points;
  std::string without;
  for (const auto& [place, value] : cells.line(*predicate.slope, predicate.along)) {
    if (value.trained()) throw UsageError("a slope is one of times or bytes");
    if (!value.missing.empty()) {
      without += (without.empty() ? "" : "; ") + value.missing;
      continue;
    }
    points.push_back({place, value.estimate.median, value.estimate.low, value.estimate.high});
  }
  const GrowthFit fit = fit_growth(points);
  if (!fit.measured) return undecided(without.empty() ? fit.reason : without);
  Evidence evidence = judged({*fit.measured, fit.low, fit.high}, *predicate.within);
  evidence.found = predicate.slope->label + ": exponent " +
                   interval_text({*fit.measured, fit.low, fit.high}) + " from " +
                   number_text(points.front().size) + " to " + number_text(points.back().size);
  if (!without.empty()) evidence.reason += (evidence.reason.empty() ? "" : "; ") + without;
  return evidence;
}

Evidence evaluate_predicate(Cells& cells, const Predicate& predicate) {
  if (!predicate.all.empty()) {
    std::vector<Evidence> parts;
    for (const Predicate& part : predicate.all) parts.push_back(evaluate_predicate(cells, part));
    return combined(parts);
  }
  if (predicate.value) return evaluate_value(cells, predicate);
  if (predicate.slope) return evaluate_slope(cells, predicate);
  if (!predicate.crossing.empty()) {
    expect_same_kind(predicate.crossing);
    return evaluate_crossing(cells, predicate);
  }
  if (!predicate.less.empty()) {
    expect_same_kind(predicate.less);
    return compare_chain(cells, predicate);
  }
  const bool ratio = !predicate.ratio.empty();
  const std::vector<ClaimedQuantity>& pair = ratio ? predicate.ratio : predicate.difference;
  expect_same_kind(pair);
  return compare_pair(cells, pair[0], pair[1], predicate.along,
                      [&](const Value& a, const Value& b) {
                        if (a.trained() == ratio) {
                          throw UsageError(ratio ? "a ratio is one of times, bytes or counts"
                                                 : "a difference is one of trainings");
                        }
                        return ratio ? compare_ratio(a, b, *predicate.within, false)
                                     : compare_difference(a, b, *predicate.within, false);
                      });
}

struct SizeBeside {
  std::string words;  ///< "length 4096 of 16000, steps 700 of 200 k"
  bool smaller = false;
};

/// The greatest sizes of the cells beside the paper's.
SizeBeside size_beside(const PaperClaim& claim, const Cells& cells) {
  SizeBeside beside;
  for (const auto& [name, published] : claim.size) {
    std::optional<double> ours;
    for (const result::CellRecord* cell : cells.used()) {
      const auto size = size_of(*cell, name);
      auto own = size && size->is_number() ? std::optional(size->get<double>()) : std::nullopt;
      if (!own) own = number_of(cell->metrics, name);
      if (own) ours = std::max(ours.value_or(*own), *own);
    }
    if (!ours) throw UsageError("no cell has the size \"" + text::quotable(name) + "\"");
    beside.words += (beside.words.empty() ? "" : ", ") + name + " " + number_text(*ours) + " of " +
                    number_text(published);
    beside.smaller = beside.smaller || *ours < published;
  }
  return beside;
}

/// What is not seen at a smaller size may be seen at the paper's.
void excuse_smaller(Evidence& evidence, const SizeBeside& beside) {
  if (!beside.smaller || evidence.outcome != ClaimOutcome::opposite) return;
  evidence.outcome = ClaimOutcome::undecided;
  evidence.leaning = Leaning::against;
  evidence.reason = "smaller than in the paper" +
                    (evidence.reason.empty() ? std::string() : "; " + evidence.reason);
}

}  // namespace

Evidence evaluate(const PaperClaim& claim, const result::Result& result) {
  Cells cells(result);
  try {
    Evidence evidence = evaluate_predicate(cells, *claim.predicate);
    const SizeBeside beside = size_beside(claim, cells);
    evidence.size = beside.words;
    excuse_smaller(evidence, beside);
    if (evidence.outcome != ClaimOutcome::undecided) evidence.leaning = Leaning::none;
    return evidence;
  } catch (const UsageError& error) {
    throw UsageError("the claim " + claim.id() + ": " + error.what());
  }
}

std::vector<EvaluatedClaim> evaluate_all(const std::vector<PaperClaim>& claims,
                                         const result::Result& result) {
  std::vector<EvaluatedClaim> all;
  for (const PaperClaim& claim : claims) {
    if (!claim.predicate || claim.suite != result.suite.name) continue;
    EvaluatedClaim one{claim, {}};
    try {
      one.evidence = evaluate(claim, result);
    } catch (const UsageError& error) {
      one.evidence.reason = error.what();
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace attnbench::reports::claims
