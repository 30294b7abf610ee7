#include "harness/compare/compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/result/record.hpp"
#include "core/statistics.hpp"
#include "core/text/format.hpp"

namespace attnbench::compare {
namespace {

const Json* find(const Json& object, const std::string& pointer) {
  const Json::json_pointer place(pointer);
  return object.contains(place) ? &object[place] : nullptr;
}

/// Fewer processes than this on either side say nothing of the next process.
constexpr std::size_t enough_rounds = 3;
/// From here on the interval of a median leaves the extremes out, and two of 95 % are disjoint this
/// often (simulated: reference of the design, harness §8).
constexpr std::size_t many_rounds = 9;
constexpr double disjoint_order_intervals = 0.006;

/// Cells by id, in the plan's order.
struct Cells {
  std::vector<std::string> order;
  std::map<std::string, const Json*> by_id;
  std::map<std::string, std::string> names;

  explicit Cells(const Json& result) {
    for (const Json& cell : result["attnbench"]["cells"]) {
      const std::string id = cell["id"].get<std::string>();
      if (by_id.emplace(id, &cell).second) order.push_back(id);
    }
    for (const result::Panel& panel : result::panels(result)) {
      for (const result::Placed& placed : panel.cells) {
        names[(*placed.cell)["id"].get<std::string>()] =
            panel.task_label + " " + placed.series + place_name(panel, placed);
      }
    }
  }
};

/// Median and bounds over values of rounds, as combine() takes them.
Spread spread_of(const std::vector<double>& values) {
  const auto order = measure::median_interval(values);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {measure::median(values), order ? order->low : *low, order ? order->high : *high};
}

/// The undisturbed rounds of one timing: seconds, and seconds in units of the round's calibration
/// probe.
struct Rounds {
  std::vector<double> seconds;
  std::vector<double> calibrated;  ///< as many, or empty where a probe is missing
  std::size_t disturbed = 0;

  explicit Rounds(const Json& timing) {
    for (const Json& round : timing["rounds"]) {
      if (result::is_disturbed_round(round)) {
        ++disturbed;
        continue;
      }
      const double median = round["median_seconds"].get<double>();
      const double probe = round.value("calibration_seconds", 0.0);
      seconds.push_back(median);
      if (probe > 0) calibrated.push_back(median / probe);
    }
    if (calibrated.size() != seconds.size()) calibrated.clear();
  }
};

/// The bounds that two intervals leave for a ratio.
struct Ratio {
  double low = 0;
  double high = 0;

  Ratio(const Spread& base, const Spread& changed)
      : low(changed.low / base.high), high(changed.high / base.low) {}
  bool disjoint() const { return low > 1 || high < 1; }
  Verdict verdict(double margin) const { return verdict_of(low, high, 1 + margin); }
};

void judge(Pair& pair, const Rounds& base, const Rounds& changed, bool same_machine,
           double margin) {
  const Ratio raw(*pair.base, *pair.changed);
  pair.verdict = raw.verdict(margin);
  if (!base.calibrated.empty() && !changed.calibrated.empty()) {
    const Spread before = spread_of(base.calibrated);
    const Spread after = spread_of(changed.calibrated);
    pair.calibrated_ratio = after.median / before.median;
    const Verdict calibrated = Ratio(before, after).verdict(margin);
    const bool moved = pair.verdict == Verdict::slow || pair.verdict == Verdict::fast;
    // A change of the machine's speed moves the raw times only; a change of the code moves both.
    if (moved && calibrated != pair.verdict) {
      pair.verdict = Verdict::unclear;
      pair.reason = "not so in calibrated times";
    } else if (pair.verdict == Verdict::unclear && calibrated == Verdict::same) {
      pair.verdict = Verdict::same;
    }
  }
  if (pair.verdict == Verdict::unclear && pair.reason.empty()) {
    pair.reason = raw.disjoint() ? "the difference is within the margin" : "the intervals overlap";
  }
  if (!same_machine) {
    pair.verdict = Verdict::unclear;
    pair.reason = "not known to be one machine";
  } else if (std::min(pair.base_rounds, pair.changed_rounds) < enough_rounds) {
    pair.verdict = Verdict::unclear;
    pair.reason = pair.left_out > 0 ? result::preempted_words(pair.left_out, pair.rounds)
                                    : "fewer than 3 rounds";
  }
}

void measure_pair(Pair& pair, const Json& base, const Json& changed, bool same_machine,
                  double margin) {
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
  const Ratio ratio(*pair.base, *pair.changed);
  pair.ratio = pair.changed->median / pair.base->median;
  pair.ratio_low = ratio.low;
  pair.ratio_high = ratio.high;
  pair.disjoint = ratio.disjoint();
  judge(pair, before, after, same_machine, margin);
}

/// The pairs of one cell: one per timing of either side, or one that says why there is none.
std::vector<Pair> pairs_of(const Json& base, const Json& changed, const std::string& name,
                           bool same_machine, double margin) {
  Pair blank;
  blank.id = base["id"].get<std::string>();
  blank.name = name;
  const Json before = base.value("timing", Json::object());
  const Json after = changed.value("timing", Json::object());
  std::set<std::string> whats;
  for (const Json& timings : {before, after}) {
    for (const auto& [what, timing] : timings.items()) whats.insert(what);
  }
  const std::string was = base["status"].get<std::string>();
  const std::string is = changed["status"].get<std::string>();
  const bool disturbed = result::is_disturbed(base) || result::is_disturbed(changed);
  const std::string ended = was + ", then " + is + (disturbed ? ": repeat on a quiet machine" : "");
  std::vector<Pair> pairs;
  for (const std::string& what : whats) {
    Pair pair = blank;
    pair.what = what;
    if (before.contains(what) && after.contains(what)) {
      measure_pair(pair, before[what], after[what], same_machine, margin);
      if (!result::is_ok(base) || !result::is_ok(changed)) {
        pair.verdict = Verdict::unclear;
        pair.reason = ended;
      }
    } else {
      pair.reason = ended;
    }
    pairs.push_back(std::move(pair));
  }
  if (!pairs.empty()) return pairs;
  const bool alike = was == is && !disturbed;
  blank.verdict = alike ? Verdict::same : Verdict::unclear;
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

std::string place_name(const result::Panel& panel, const result::Placed& placed) {
  std::string name;
  if (placed.x) name += " " + panel.axis + "=" + result::human_value(*placed.x);
  if (!panel.facet.empty()) name += " " + panel.facet_text();
  return name;
}

std::vector<std::string> differences_of(const Json& base, const Json& changed) {
  static const std::vector<std::pair<const char*, const char*>> facts{
      {"/machine/host", "host"},
      {"/machine/cpu_model", "CPU"},
      {"/machine/devices", "devices"},
      {"/run/threads", "threads"},
      {"/run/seed", "seed"},
      {"/run/rounds", "rounds"},
      {"/suite/hash", "suite"},
      {"/suite/profile", "profile"},
      {"/machine/governor", "governor"},
      {"/provenance/compiler", "compiler"},
      {"/provenance/flags", "compiler flags"},
      {"/machine/version", "LibTorch"},
      {"/machine/blas/library", "BLAS"},
      {"/machine/blas/core_type", "BLAS core type"},
      {"/provenance/commit", "commit"},
      {"/provenance/dirty", "uncommitted changes"},
      {"/provenance/binary", "binary"}};
  std::vector<std::string> sentences;
  for (const auto& [pointer, word] : facts) {
    const Json* before = find(base["attnbench"], pointer);
    const Json* after = find(changed["attnbench"], pointer);
    if ((!before && !after) || (before && after && *before == *after)) continue;
    std::string sentence = word;
    sentence.append(": ").append(before ? result::human_value(*before) : "not said");
    sentence.append(", then ").append(after ? result::human_value(*after) : "not said");
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

bool one_machine(const Json& base, const Json& changed) {
  for (const char* pointer : {"/machine/host", "/machine/cpu_model", "/run/threads"}) {
    const Json* before = find(base["attnbench"], pointer);
    const Json* after = find(changed["attnbench"], pointer);
    if (!before || !after || *before != *after) return false;
  }
  const Json* before = find(base["attnbench"], "/machine/devices");
  const Json* after = find(changed["attnbench"], "/machine/devices");
  if (!before || !after) return true;
  for (const auto& [word, card] : after->items()) {
    if (before->contains(word) && (*before)[word] != card) return false;
  }
  return true;
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::same:
      return "SAME";
    case Verdict::slow:
      return "SLOW";
    case Verdict::fast:
      return "FAST";
    case Verdict::unclear:
      return "UNCLEAR";
    case Verdict::added:
      return "NEW";
    case Verdict::gone:
      return "GONE";
  }
  return "";
}

Verdict verdict_of(double low, double high, double reach) {
  if (low > reach) return Verdict::slow;
  if (high < 1 / reach) return Verdict::fast;
  if (high <= reach && low >= 1 / reach) return Verdict::same;
  return Verdict::unclear;
}

double disjoint_by_chance(std::size_t n, std::size_t m) {
  if (n >= many_rounds || m >= many_rounds) return disjoint_order_intervals;
  const auto log_factorial = [](std::size_t count) {
    return std::lgamma(static_cast<double>(count) + 1);
  };
  return std::min(1.0, 2 * std::exp(log_factorial(n) + log_factorial(m) - log_factorial(n + m)));
}

Comparison compare(const Json& base, const Json& changed, double margin) {
  Comparison comparison;
  comparison.differences = differences_of(base, changed);
  comparison.same_machine = one_machine(base, changed);
  const Cells before(base);
  const Cells after(changed);
  for (const std::string& id : before.order) {
    const std::string& name = before.names.at(id);
    const auto found = after.by_id.find(id);
    if (found == after.by_id.end()) {
      Pair pair;
      pair.id = id;
      pair.name = name;
      pair.verdict = Verdict::gone;
      comparison.pairs.push_back(std::move(pair));
      continue;
    }
    for (Pair& pair :
         pairs_of(*before.by_id.at(id), *found->second, name, comparison.same_machine, margin)) {
      comparison.pairs.push_back(std::move(pair));
    }
  }
  for (const std::string& id : after.order) {
    if (before.by_id.contains(id)) continue;
    Pair pair;
    pair.id = id;
    pair.name = after.names.at(id);
    pair.verdict = Verdict::added;
    comparison.pairs.push_back(std::move(pair));
  }
  add_summary(comparison);
  return comparison;
}

}  // namespace attnbench::compare
