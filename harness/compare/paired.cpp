#include "harness/compare/paired.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/result/record.hpp"
#include "core/statistics.hpp"

namespace attnbench::compare {
namespace {

constexpr double error_of_all = 0.05;

/// What the cells of one size have in common: task, device, and the values of all axes.
std::string size_of(const Json& cell) {
  Json key = {cell.at("task_label"), cell.value("device", "cpu")};
  for (const Json& name : cell.value("varies", Json::array())) {
    const Json* value = result::value_of(cell, name.get<std::string>());
    key.push_back(value == nullptr ? Json() : *value);
  }
  return key.dump();
}

/// The cells of one size; null where a side has none.
struct Trio {
  std::string name;
  const Json* base = nullptr;
  const Json* changed = nullptr;
  const Json* control = nullptr;
};

std::vector<Trio> trios_of(const Json& result, const Sides& sides) {
  std::vector<Trio> trios;
  std::map<std::string, std::size_t> place;
  for (const result::Panel& panel : result::panels(result)) {
    for (const result::Placed& placed : panel.cells) {
      const Json& cell = *placed.cell;
      const std::string label = cell.at("label");
      const auto [found, fresh] = place.emplace(size_of(cell), trios.size());
      if (fresh) {
        const std::string options =
            placed.series.substr(std::min(placed.series.size(), label.size()));
        trios.push_back({panel.task_label + options + place_name(panel, placed)});
      }
      Trio& trio = trios[found->second];
      (label == sides.base      ? trio.base
       : label == sides.changed ? trio.changed
                                : trio.control) = &cell;
    }
  }
  return trios;
}

const Json* timing_of(const Json* cell, const std::string& what) {
  if (cell == nullptr || !cell->contains("timing") || !cell->at("timing").contains(what)) {
    return nullptr;
  }
  return &cell->at("timing").at(what);
}

/// The rounds of one timing by number: medians of those that count, and which were disturbed and
/// not measured again.
struct Rounds {
  std::map<int, double> seconds;
  std::set<int> disturbed;

  explicit Rounds(const Json* timing) {
    if (timing == nullptr) return;
    for (const Json& round : timing->at("rounds")) {
      const int number = round.value("round", 0);
      if (result::is_disturbed_round(round)) {
        disturbed.insert(number);
      } else {
        seconds[number] = round["median_seconds"].get<double>();
      }
    }
    for (const auto& [number, median] : seconds) disturbed.erase(number);
  }
  bool has(int number) const { return seconds.contains(number) || disturbed.contains(number); }
};

/// One timing of a trio over its rounds.
struct Turned {
  std::vector<double> base;     ///< seconds of the rounds that count
  std::vector<double> changed;  ///< as many
  std::vector<double> logs;     ///< ln(changed / base), as many
  std::vector<double> control;  ///< ln(control / base), of those that the control has, too
  std::size_t left_out = 0;     ///< rounds of both sides in which one of the three was disturbed
};

Turned turned_of(const Rounds& base, const Rounds& changed, const Rounds& control) {
  Turned turned;
  for (const int number : base.disturbed) turned.left_out += changed.has(number);
  for (const auto& [number, before] : base.seconds) {
    if (!changed.has(number)) continue;
    if (changed.disturbed.contains(number) || control.disturbed.contains(number)) {
      ++turned.left_out;
      continue;
    }
    const double after = changed.seconds.at(number);
    turned.base.push_back(before);
    turned.changed.push_back(after);
    turned.logs.push_back(std::log(after / before));
    const auto again = control.seconds.find(number);
    if (again != control.seconds.end()) turned.control.push_back(std::log(again->second / before));
  }
  return turned;
}

std::optional<Control> ratio_of(const std::vector<double>& logs, double confidence) {
  const auto interval = measure::median_interval(logs, confidence);
  if (!interval) return std::nullopt;
  return Control{std::exp(measure::median(logs)), std::exp(interval->low),
                 std::exp(interval->high)};
}

/// A timing's own median and bounds or, where rounds of it were left out, those of the others.
Spread spread_of(const Json& timing, const std::vector<double>& seconds, bool all) {
  if (all || seconds.empty()) {
    return {timing["median_seconds"], timing["low_seconds"], timing["high_seconds"]};
  }
  const auto [low, high] = std::minmax_element(seconds.begin(), seconds.end());
  return {measure::median(seconds), *low, *high};
}

/// Whether the same code against itself did what only a change of the code may do.
bool moved(const std::optional<Control>& control, double margin) {
  if (!control) return false;
  const Verdict found = verdict_of(control->low, control->high, 1 + margin);
  return found == Verdict::slow || found == Verdict::fast;
}

std::size_t rounds_needed(double confidence) {
  return static_cast<std::size_t>(std::ceil(1 - std::log2(1 - confidence)));
}

std::string too_few(const Pair& pair, std::size_t count, double confidence) {
  if (pair.left_out > 0) return result::preempted_words(pair.left_out, pair.rounds);
  return std::to_string(count) + (count == 1 ? " round gives" : " rounds give") +
         " no interval; --rounds " + std::to_string(rounds_needed(confidence)) + " would";
}

void judge(Pair& pair, const std::vector<double>& logs, const Turns& turns) {
  const auto ratio = ratio_of(logs, turns.confidence);
  pair.base_rounds = pair.changed_rounds = logs.size();
  if (!ratio) {
    if (!logs.empty()) {
      pair.ratio = pair.ratio_low = pair.ratio_high = std::exp(measure::median(logs));
    }
    pair.reason = too_few(pair, logs.size(), turns.confidence);
    return;
  }
  pair.ratio = ratio->ratio;
  pair.ratio_low = ratio->low;
  pair.ratio_high = ratio->high;
  pair.disjoint = pair.ratio_low > 1 || pair.ratio_high < 1;
  if (moved(pair.control, turns.margin)) {
    pair.reason = "the base against itself moved by more than the margin, too";
    return;
  }
  pair.verdict = verdict_of(pair.ratio_low, pair.ratio_high, 1 + turns.margin);
  if (pair.verdict == Verdict::unclear) {
    pair.reason =
        pair.disjoint ? "the difference may be within the margin" : "the interval goes across 1";
  }
}

std::string state_of(const Json* cell) {
  if (cell == nullptr) return "no such cell";
  const std::string reason = cell->value("reason", "");
  return cell->value("status", "error") + (reason.empty() ? "" : " (" + reason + ")");
}

/// What was timed on both sides; empty where nothing was.
std::vector<std::string> common_timings(const Trio& trio) {
  std::vector<std::string> whats;
  if (trio.base == nullptr || !trio.base->contains("timing")) return whats;
  for (const auto& [what, timing] : trio.base->at("timing").items()) {
    if (timing_of(trio.changed, what) != nullptr) whats.push_back(what);
  }
  return whats;
}

std::string states_of(const Trio& trio) {
  return "base: " + state_of(trio.base) + "; new: " + state_of(trio.changed);
}

Pair untimed(const Trio& trio) {
  Pair pair;
  pair.name = trio.name;
  pair.reason = states_of(trio);
  return pair;
}

/// Cells that are disturbed, or did not end well though some of their rounds did, are in no
/// verdict.
void hold_to_status(Pair& pair, const Trio& trio) {
  const auto any = [&trio](const auto& is) {
    return is(trio.base) || is(trio.changed) || (trio.control != nullptr && is(trio.control));
  };
  if (!any([](const Json* cell) { return !result::is_ok(*cell); })) return;
  pair.verdict = Verdict::unclear;
  const bool counted =
      pair.left_out > 0 && pair.reason == result::preempted_words(pair.left_out, pair.rounds);
  if (counted) return;  // says it already
  const bool sides_ok = result::is_ok(*trio.base) && result::is_ok(*trio.changed);
  pair.reason = sides_ok ? "the base once more: " + state_of(trio.control) : states_of(trio);
  if (any([](const Json* cell) { return result::is_disturbed(*cell); })) {
    pair.reason += ": repeat on a quiet machine";
  }
}

Pair timed(const Trio& trio, const std::string& what, const Turns& turns) {
  Pair pair;
  pair.id = trio.base->at("id");
  pair.name = trio.name;
  pair.what = what;
  const Json& base = *timing_of(trio.base, what);
  const Json& changed = *timing_of(trio.changed, what);
  const Turned turned =
      turned_of(Rounds(&base), Rounds(&changed), Rounds(timing_of(trio.control, what)));
  pair.left_out = turned.left_out;
  pair.rounds = turned.logs.size() + turned.left_out;
  pair.base = spread_of(base, turned.base, turned.left_out == 0);
  pair.changed = spread_of(changed, turned.changed, turned.left_out == 0);
  pair.control = ratio_of(turned.control, turns.confidence);
  judge(pair, turned.logs, turns);
  hold_to_status(pair, trio);
  return pair;
}

}  // namespace

std::vector<Json> in_turns(const std::vector<Json>& cells) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<Json>> by_size;
  for (const Json& cell : cells) {
    std::vector<Json>& same = by_size[size_of(cell)];
    if (same.empty()) order.push_back(size_of(cell));
    same.push_back(cell);
  }
  std::vector<Json> turned;
  for (const std::string& size : order) {
    for (Json& cell : by_size[size]) turned.push_back(std::move(cell));
  }
  return turned;
}

Comparison paired(const Json& result, const Sides& sides, double margin) {
  const std::vector<Trio> trios = trios_of(result, sides);
  std::size_t count = 0;
  for (const Trio& trio : trios) count += common_timings(trio).size();
  Comparison comparison;
  comparison.same_machine = true;
  comparison.timed = count;
  comparison.turns = Turns{sides.base, sides.changed, margin,
                           1 - error_of_all / static_cast<double>(std::max<std::size_t>(count, 1))};
  for (const Trio& trio : trios) {
    const std::vector<std::string> whats = common_timings(trio);
    if (whats.empty()) comparison.pairs.push_back(untimed(trio));
    for (const std::string& what : whats) {
      comparison.pairs.push_back(timed(trio, what, *comparison.turns));
      comparison.disjoint += comparison.pairs.back().disjoint;
    }
  }
  return comparison;
}

ExitCode exit_code(const Comparison& comparison, bool gate) {
  const auto any = [&](Verdict verdict) {
    return std::any_of(comparison.pairs.begin(), comparison.pairs.end(),
                       [&](const Pair& pair) { return pair.verdict == verdict; });
  };
  if (gate && any(Verdict::slow)) return ExitCode::failed;
  return any(Verdict::unclear) ? ExitCode::undecided : ExitCode::done;
}

}  // namespace attnbench::compare
