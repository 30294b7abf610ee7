#include "harness/program/compare/look.hpp"

#include <algorithm>
#include <cmath>

#include "core/statistics.hpp"
#include "harness/program/compare/paired_rounds.hpp"

namespace attnbench::compare {
namespace {

using result::CellRecord;
using result::Timing;

const Timing* timing_of(const CellRecord* cell, const std::string& what) {
  return cell == nullptr ? nullptr : result::timing_of(*cell, what);
}

/// A timing's own median and bounds or, where rounds of it count for nothing, those of the others.
Spread spread_of_turns(const Timing& timing, const std::vector<double>& seconds) {
  if (seconds.size() == timing.rounds.size() || seconds.empty()) {
    return {timing.median_seconds, timing.low_seconds, timing.high_seconds};
  }
  return spread_of(seconds);
}

/// Whether the same code against itself did what only a change of the code may do.
bool moved(const std::optional<Control>& control, double bar) {
  if (!control) return false;
  const SpeedVerdict found = verdict_of(control->low, control->high, 1 + bar);
  return found == SpeedVerdict::slow || found == SpeedVerdict::fast;
}

/// Ratios nearer to 1 than this need quiet rounds.
constexpr double far_from_1 = 1.1;
/// Of the control's interval beside other programs, which is a measure of their noise and no test.
constexpr double noise_confidence = 0.8;

/// What an interval of all rounds, disturbed ones among them, says of a ratio that is far from 1:
/// beyond anything that the base did against itself in the same rounds.
SpeedVerdict verdict_beside_others(const Control& ratio, const Control& control) {
  const double reach = std::max({far_from_1, control.high, 1 / control.low});
  const SpeedVerdict found = verdict_of(ratio.low, ratio.high, reach);
  return found == SpeedVerdict::same ? SpeedVerdict::unclear : found;
}

std::string counted_rounds(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " round" : " rounds");
}

std::string too_few(const Pair& pair, std::size_t count, double confidence) {
  if (pair.left_out > 0) return result::preempted_words(pair.left_out, pair.rounds);
  return counted_rounds(count) + (count == 1 ? " gives" : " give") + " no interval; --rounds " +
         std::to_string(rounds_needed(confidence)) + " would";
}

/// One look at one timing of a trio.
class Look {
 public:
  Look(const Trio& trio, const std::string& what, const Turns& turns)
      : trio_(trio),
        turns_(turns),
        what_(what),
        base_(timing_of(trio.base, what)),
        changed_(timing_of(trio.changed, what)),
        control_(timing_of(trio.control, what)) {}

  /// The verdict of the rounds in `range`.
  Pair judged(const RoundRange& range) const;
  /// Whether any of its cells has a round in `range`, and whether all have.
  bool begun(const RoundRange& range) const {
    return has_round_in(base_, range) || has_round_in(changed_, range);
  }
  bool complete(const RoundRange& range) const {
    return has_round_in(base_, range) && has_round_in(changed_, range) &&
           (control_ == nullptr || has_round_in(control_, range));
  }
  /// The rounds that the first look still needs, to its next stage; 0 where it has all.
  int wanted_at_first() const;
  /// Confirms or withdraws a SLOW verdict by further rounds, which no look has used.
  void confirm(Pair& pair) const;

 private:
  PairedRounds paired_rounds(const RoundRange& range) const {
    return paired_rounds_of(base_, changed_, control_, range);
  }
  void judge_pair(Pair& pair, const std::vector<double>& logs) const;
  void judge_beside_others(Pair& pair, const RoundRange& range) const;

  const Trio& trio_;
  const Turns& turns_;
  const std::string what_;
  const Timing* base_;
  const Timing* changed_;
  const Timing* control_;
};

void Look::judge_pair(Pair& pair, const std::vector<double>& logs) const {
  const auto ratio = ratio_of(logs, turns_.confidence);
  pair.base_rounds = pair.changed_rounds = logs.size();
  if (!ratio) {
    if (!logs.empty()) {
      pair.ratio = pair.ratio_low = pair.ratio_high = std::exp(attnbench::median(logs));
    }
    pair.reason = too_few(pair, logs.size(), turns_.confidence);
    return;
  }
  pair.ratio = ratio->ratio;
  pair.ratio_low = ratio->low;
  pair.ratio_high = ratio->high;
  pair.disjoint = pair.ratio_low > 1 || pair.ratio_high < 1;
  const double bar = bar_of(turns_.gate, pair.base->median);
  if (moved(pair.control, bar)) {
    pair.reason = "the base against itself moved by more than the margin, too";
    return;
  }
  pair.verdict = verdict_of(pair.ratio_low, pair.ratio_high, 1 + bar);
  if (pair.verdict == SpeedVerdict::unclear) {
    pair.reason =
        pair.disjoint ? "the difference may be within the margin" : "the interval goes across 1";
  }
}

std::string state_of(const CellRecord* cell) {
  if (cell == nullptr) return "no such cell";
  return to_string(cell->status) + (cell->reason.empty() ? "" : " (" + cell->reason + ")");
}

std::string states_of(const Trio& trio) {
  return "base: " + state_of(trio.base) + "; new: " + state_of(trio.changed);
}

/// Whether a cell of the trio ended neither ok nor disturbed: more rounds would add nothing.
bool is_over(const Trio& trio) {
  for (const CellRecord* cell : {trio.base, trio.changed, trio.control}) {
    if (cell != nullptr && !result::is_ok(*cell) && !result::is_disturbed(*cell)) return true;
  }
  return false;
}

/// Cells that are disturbed, or did not end well though some of their rounds did, are in no
/// verdict.
void hold_to_status(Pair& pair, const Trio& trio) {
  const auto any = [&trio](const auto& is) {
    return is(trio.base) || is(trio.changed) || (trio.control != nullptr && is(trio.control));
  };
  if (!any([](const CellRecord* cell) { return !result::is_ok(*cell); })) return;
  pair.verdict = SpeedVerdict::unclear;
  const bool counted =
      pair.left_out > 0 && pair.reason == result::preempted_words(pair.left_out, pair.rounds);
  if (counted) return;  // says it already
  const bool sides_ok = result::is_ok(*trio.base) && result::is_ok(*trio.changed);
  pair.reason = sides_ok ? "the base once more: " + state_of(trio.control) : states_of(trio);
  if (any([](const CellRecord* cell) { return result::is_disturbed(*cell); })) {
    pair.reason += ": repeat on a quiet machine";
  }
}

/// Where disturbed rounds leave a pair unclear. Threads of a call wait for each other, so that what
/// has several may become many times slower than what has few, and the control does not show it.
void Look::judge_beside_others(Pair& pair, const RoundRange& range) const {
  if (pair.verdict != SpeedVerdict::unclear || pair.left_out == 0 || is_over(trio_)) return;
  const bool disturbed = pair.reason.ends_with("on a quiet machine");
  if (turns_.threads > 1 && disturbed) pair.reason += ", or with --threads 1";
  if (turns_.threads != 1) return;
  const LeastOfRounds least = least_of_rounds(base_, changed_, control_, range);
  const auto ratio = ratio_of(least.logs, turns_.confidence);
  const auto control = ratio_of(least.control, noise_confidence);
  if (!ratio || !control) return;
  const SpeedVerdict found = verdict_beside_others(*ratio, *control);
  if (found == SpeedVerdict::unclear) return;
  pair.verdict = found;
  pair.reason.clear();
  pair.beside_others = true;
  pair.base = spread_of(least.base);
  pair.changed = spread_of(least.changed);
  pair.control = control;
  pair.base_rounds = pair.changed_rounds = least.logs.size();
  pair.ratio = ratio->ratio;
  pair.ratio_low = ratio->low;
  pair.ratio_high = ratio->high;
  pair.disjoint = true;
}

Pair Look::judged(const RoundRange& range) const {
  Pair pair;
  pair.id = trio_.base->id;
  pair.name = trio_.name;
  pair.what = what_;
  const PairedRounds rounds = paired_rounds(range);
  pair.left_out = rounds.left_out;
  pair.rounds = rounds.logs.size() + rounds.left_out;
  pair.base = spread_of_turns(*base_, rounds.base);
  pair.changed = spread_of_turns(*changed_, rounds.changed);
  pair.control = ratio_of(rounds.control, turns_.confidence);
  judge_pair(pair, rounds.logs);
  hold_to_status(pair, trio_);
  judge_beside_others(pair, range);
  return pair;
}

int Look::wanted_at_first() const {
  if (turns_.gate.seconds_most == 0) return 0;  // then all of them are measured at once
  for (const int rounds : stages(turns_.gate)) {
    if (!complete({rounds - 1, rounds})) return rounds;
  }
  return 0;
}

void Look::confirm(Pair& pair) const {
  const Gate& gate = turns_.gate;
  const std::int64_t last = std::int64_t{gate.rounds_most} + gate.confirm;
  const RoundRange range{gate.rounds_most, last};
  const std::vector<double> logs = pair.beside_others
                                       ? least_of_rounds(base_, changed_, control_, range).logs
                                       : paired_rounds(range).logs;
  pair.confirm_wanted = !complete({last - 1, last});
  pair.confirmation = ratio_of(logs, gate.confidence);
  const double reach = pair.beside_others ? far_from_1 : 1 + bar_of(gate, pair.base->median);
  if (pair.confirmation && pair.confirmation->low > 1 && pair.confirmation->ratio > reach) return;
  pair.verdict = SpeedVerdict::unclear;
  pair.reason = "SLOW in " + counted_rounds(pair.base_rounds);
  if (pair.confirmation) {
    const Control& found = *pair.confirmation;
    pair.reason += ", not confirmed by " + std::to_string(logs.size()) +
                   " in fresh processes: " + ratio_text(found.ratio, found.low, found.high);
  } else if (logs.empty()) {
    pair.reason += ", and not confirmed: no round in fresh processes counts";
  } else {
    pair.reason +=
        ", and " + counted_rounds(logs.size()) + " in fresh processes are too few to confirm it";
  }
}

}  // namespace

/// What was timed on both sides; empty where nothing was.
std::vector<std::string> common_timings(const Trio& trio) {
  std::vector<std::string> whats;
  if (trio.base == nullptr) return whats;
  for (const auto& [what, timing] : trio.base->timing) {
    if (timing_of(trio.changed, what) != nullptr) whats.push_back(what);
  }
  return whats;
}

Pair untimed(const Trio& trio) {
  Pair pair;
  pair.name = trio.name;
  pair.reason = states_of(trio);
  return pair;
}

Pair timed(const Trio& trio, const std::string& what, const Turns& turns) {
  const Gate& gate = turns.gate;
  const Look look(trio, what, turns);
  Pair pair;
  int before = 0;
  for (const int rounds : looks(gate)) {
    if (before > 0 && !look.begun({before, rounds})) {
      pair.rounds_wanted = rounds;
      break;
    }
    pair = look.judged({0, rounds});
    if (is_over(trio)) break;
    if (before == 0) pair.rounds_wanted = look.wanted_at_first();
    if (before > 0 && !look.complete({rounds - 1, rounds})) pair.rounds_wanted = rounds;
    if (pair.rounds_wanted > 0 || pair.verdict != SpeedVerdict::unclear) break;
    before = rounds;
  }
  if (pair.verdict == SpeedVerdict::slow && gate.confirm > 0) look.confirm(pair);
  return pair;
}

}  // namespace attnbench::compare
