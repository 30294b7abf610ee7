#include "harness/program/compare/compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/statistics.hpp"
#include "core/text/format.hpp"

namespace attnbench::compare {
namespace {

using result::CellRecord;
using result::Timing;

/// Fewer processes than this on either side say nothing of the next process.
constexpr std::size_t enough_rounds = 3;
/// From here on the interval of a median leaves the extremes out, and two of 95 % are disjoint this
/// often (simulated: reference of the design, harness §8).
constexpr std::size_t many_rounds = 9;
constexpr double disjoint_order_intervals = 0.006;

/// Cells by id, in the plan's order.
struct Cells {
  std::vector<std::string> order;
  std::map<std::string, const CellRecord*> by_id;
  std::map<std::string, std::string> names;

  explicit Cells(const result::Result& result) {
    for (const CellRecord& cell : result.cells) {
      if (by_id.emplace(cell.id, &cell).second) order.push_back(cell.id);
    }
    for (const reports::Panel& panel : reports::panels(result)) {
      for (const reports::Placed& placed : panel.cells) {
        names[placed.cell->id] = panel.task_label + " " + placed.series + place_name(panel, placed);
      }
    }
  }
};

/// The undisturbed rounds of one timing: seconds, and seconds in units of the round's calibration
/// probe.
struct Rounds {
  std::vector<double> seconds;
  std::vector<double> calibrated;  ///< as many, or empty where a probe is missing
  std::size_t disturbed = 0;

  explicit Rounds(const Timing& timing) {
    for (const result::TimingRound& round : timing.rounds) {
      if (round.disturbed) {
        ++disturbed;
        continue;
      }
      const double probe = round.calibration_seconds.value_or(0);
      seconds.push_back(round.median_seconds);
      if (probe > 0) calibrated.push_back(round.median_seconds / probe);
    }
    if (calibrated.size() != seconds.size()) calibrated.clear();
  }
};

/// How rounds of one kind of call scatter, over all cells of a result. Three rounds of one cell lie
/// close together by chance: their own range would call two runs of one program different.
struct Scatters {
  std::map<std::string, Scatter> seconds;
  std::map<std::string, Scatter> calibrated;

  explicit Scatters(const result::Result& result) {
    for (const CellRecord& cell : result.cells) {
      for (const auto& [what, timing] : cell.timing) {
        const Rounds rounds(timing);
        seconds[what].add(rounds.seconds);
        calibrated[what].add(rounds.calibrated);
      }
    }
  }
};

Spread widened(const std::vector<double>& values, const Scatter& scatter) {
  return scatter.widened(spread_of(values), values.size());
}

/// What a pair is judged by, beside its own times.
struct MeasuredApart {
  Scatters base;
  Scatters changed;
  bool same_machine = false;
  double margin = 0;
};

/// The bounds that two intervals leave for a ratio.
struct Ratio {
  double low = 0;
  double high = 0;

  Ratio(const Spread& base, const Spread& changed)
      : low(changed.low / base.high), high(changed.high / base.low) {}
  bool disjoint() const { return low > 1 || high < 1; }
  SpeedVerdict verdict(double margin) const { return verdict_of(low, high, 1 + margin); }
};

void judge(Pair& pair, const Rounds& base, const Rounds& changed, const Ratio& raw,
           const MeasuredApart& sides) {
  pair.verdict = raw.verdict(sides.margin);
  if (!base.calibrated.empty() && !changed.calibrated.empty()) {
    const Spread before = widened(base.calibrated, sides.base.calibrated.at(pair.what));
    const Spread after = widened(changed.calibrated, sides.changed.calibrated.at(pair.what));
    pair.calibrated_ratio = after.median / before.median;
    const SpeedVerdict calibrated = Ratio(before, after).verdict(sides.margin);
    const bool moved = pair.verdict == SpeedVerdict::slow || pair.verdict == SpeedVerdict::fast;
    // A change of the machine's speed moves the raw times only; a change of the code moves both.
    if (moved && calibrated != pair.verdict) {
      pair.verdict = SpeedVerdict::unclear;
      pair.reason = "not so in calibrated times";
    } else if (pair.verdict == SpeedVerdict::unclear && calibrated == SpeedVerdict::same) {
      pair.verdict = SpeedVerdict::same;
    }
  }
  if (pair.verdict == SpeedVerdict::unclear && pair.reason.empty()) {
    pair.reason = raw.disjoint() ? "the difference is within the margin" : "the intervals overlap";
  }
  if (!sides.same_machine) {
    pair.verdict = SpeedVerdict::unclear;
    pair.reason = "not known to be one machine";
  } else if (std::min(pair.base_rounds, pair.changed_rounds) < enough_rounds) {
    pair.verdict = SpeedVerdict::unclear;
    pair.reason = pair.left_out > 0 ? result::preempted_words(pair.left_out, pair.rounds)
                                    : "fewer than 3 rounds";
  }
}

void measure_pair(Pair& pair, const Timing& base, const Timing& changed,
                  const MeasuredApart& sides) {
  const Rounds before(base);
  const Rounds after(changed);
  pair.left_out = before.disturbed + after.disturbed;
  pair.rounds = before.seconds.size() + after.seconds.size() + pair.left_out;
  if (before.seconds.empty() || after.seconds.empty()) {
    pair.reason = pair.left_out > 0 ? result::preempted_words(pair.left_out, pair.rounds)
                                    : "no rounds recorded";
    return;
  }
  pair.base_rounds = before.seconds.size();
  pair.changed_rounds = after.seconds.size();
  pair.base = spread_of(before.seconds);
  pair.changed = spread_of(after.seconds);
  pair.disjoint = Ratio(*pair.base, *pair.changed).disjoint();
  const Ratio ratio(widened(before.seconds, sides.base.seconds.at(pair.what)),
                    widened(after.seconds, sides.changed.seconds.at(pair.what)));
  pair.ratio = pair.changed->median / pair.base->median;
  pair.ratio_low = ratio.low;
  pair.ratio_high = ratio.high;
  judge(pair, before, after, ratio, sides);
}

/// The pairs of one cell: one per timing of either side, or one that says why there is none.
std::vector<Pair> pairs_of(const CellRecord& base, const CellRecord& changed,
                           const std::string& name, const MeasuredApart& sides) {
  Pair blank;
  blank.id = base.id;
  blank.name = name;
  std::set<std::string> whats;
  for (const CellRecord* cell : {&base, &changed}) {
    for (const auto& [what, timing] : cell->timing) whats.insert(what);
  }
  const std::string was = to_string(base.status);
  const std::string is = to_string(changed.status);
  const bool disturbed = result::is_disturbed(base) || result::is_disturbed(changed);
  const std::string ended = was + ", then " + is + (disturbed ? ": repeat on a quiet machine" : "");
  std::vector<Pair> pairs;
  for (const std::string& what : whats) {
    Pair pair = blank;
    pair.what = what;
    const Timing* const before = result::timing_of(base, what);
    const Timing* const after = result::timing_of(changed, what);
    if (before != nullptr && after != nullptr) {
      measure_pair(pair, *before, *after, sides);
      if (!result::is_ok(base) || !result::is_ok(changed)) {
        pair.verdict = SpeedVerdict::unclear;
        pair.reason = ended;
      }
    } else {
      pair.reason = ended;
    }
    pairs.push_back(std::move(pair));
  }
  if (!pairs.empty()) return pairs;
  const bool alike = was == is && !disturbed;
  blank.verdict = alike ? SpeedVerdict::same : SpeedVerdict::unclear;
  blank.reason = alike ? was + " in both" : ended;
  return {blank};
}

void add_summary(Comparison& comparison) {
  double expected = 0;
  for (const Pair& pair : comparison.pairs) {
    if (!pair.base || !pair.changed) continue;
    ++comparison.timed;
    comparison.disjoint += pair.disjoint;
    expected += disjoint_by_chance(pair.base_rounds, pair.changed_rounds);
  }
  if (comparison.timed > 0) {
    comparison.disjoint_by_chance = expected / static_cast<double>(comparison.timed);
  }
}

}  // namespace

std::string place_name(const reports::Panel& panel, const reports::Placed& placed) {
  std::string name;
  if (placed.x) name += " " + panel.axis + "=" + text::human_value(*placed.x);
  if (!panel.facet.empty()) name += " " + panel.facet_text();
  return name;
}

const char* to_string(SpeedVerdict verdict) {
  switch (verdict) {
    case SpeedVerdict::same:
      return "SAME";
    case SpeedVerdict::slow:
      return "SLOW";
    case SpeedVerdict::fast:
      return "FAST";
    case SpeedVerdict::unclear:
      return "UNCLEAR";
    case SpeedVerdict::added:
      return "NEW";
    case SpeedVerdict::gone:
      return "GONE";
  }
  return "";
}

SpeedVerdict verdict_of(double low, double high, double reach) {
  if (low > reach) return SpeedVerdict::slow;
  if (high < 1 / reach) return SpeedVerdict::fast;
  if (high <= reach && low >= 1 / reach) return SpeedVerdict::same;
  return SpeedVerdict::unclear;
}

double disjoint_by_chance(std::size_t n, std::size_t m) {
  if (n >= many_rounds || m >= many_rounds) return disjoint_order_intervals;
  const auto log_factorial = [](std::size_t count) {
    return std::lgamma(static_cast<double>(count) + 1);
  };
  return std::min(1.0, 2 * std::exp(log_factorial(n) + log_factorial(m) - log_factorial(n + m)));
}

bool anything_in_common(const Comparison& comparison) {
  return std::any_of(comparison.pairs.begin(), comparison.pairs.end(), [](const Pair& pair) {
    return pair.verdict != SpeedVerdict::added && pair.verdict != SpeedVerdict::gone;
  });
}

Comparison compare(const result::Result& base, const result::Result& changed, double margin) {
  Comparison comparison;
  comparison.differences = differences_of(base, changed);
  comparison.same_machine = one_machine(base, changed);
  const std::string before_basis = basis_of(base);
  const std::string after_basis = basis_of(changed);
  comparison.basis = before_basis == after_basis
                         ? "Both: " + before_basis + "."
                         : "Base: " + before_basis + ". New: " + after_basis + ".";
  const Cells before(base);
  const Cells after(changed);
  const MeasuredApart sides{Scatters(base), Scatters(changed), comparison.same_machine, margin};
  for (const std::string& id : before.order) {
    const std::string& name = before.names.at(id);
    const auto found = after.by_id.find(id);
    if (found == after.by_id.end()) {
      Pair pair;
      pair.id = id;
      pair.name = name;
      pair.verdict = SpeedVerdict::gone;
      comparison.pairs.push_back(std::move(pair));
      continue;
    }
    for (Pair& pair : pairs_of(*before.by_id.at(id), *found->second, name, sides)) {
      comparison.pairs.push_back(std::move(pair));
    }
  }
  for (const std::string& id : after.order) {
    if (before.by_id.contains(id)) continue;
    Pair pair;
    pair.id = id;
    pair.name = after.names.at(id);
    pair.verdict = SpeedVerdict::added;
    comparison.pairs.push_back(std::move(pair));
  }
  add_summary(comparison);
  return comparison;
}

}  // namespace attnbench::compare
