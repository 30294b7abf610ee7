#include "harness/compare/paired.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/compare/place_name.hpp"
#include "harness/measure/statistics.hpp"

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

/// ln(second / first) of every round that has both.
std::vector<double> log_ratios(const Json& first, const Json& second) {
  std::map<int, double> seconds;
  for (const Json& round : first["rounds"]) {
    seconds[round.value("round", 0)] = round["median_seconds"].get<double>();
  }
  std::vector<double> ratios;
  for (const Json& round : second["rounds"]) {
    const auto found = seconds.find(round.value("round", 0));
    if (found == seconds.end()) continue;
    ratios.push_back(std::log(round["median_seconds"].get<double>() / found->second));
  }
  return ratios;
}

std::optional<Control> ratio_of(const std::vector<double>& logs, double confidence) {
  const auto interval = measure::median_interval(logs, confidence);
  if (!interval) return std::nullopt;
  return Control{std::exp(measure::median(logs)), std::exp(interval->low),
                 std::exp(interval->high)};
}

Spread spread_of(const Json& timing) {
  return {timing["median_seconds"], timing["low_seconds"], timing["high_seconds"]};
}

/// How far from 1 a ratio may be on account of the machine alone.
double reach_of(const std::optional<Control>& control, double margin) {
  const double usual = 1 + margin;
  if (!control) return usual;
  const Verdict moved = verdict_of(control->low, control->high, usual);
  if (moved != Verdict::slow && moved != Verdict::fast) return usual;
  return std::max(control->high, 1 / control->low);
}

std::size_t rounds_needed(double confidence) {
  return static_cast<std::size_t>(std::ceil(1 - std::log2(1 - confidence)));
}

std::string why_unclear(const Pair& pair, const Turns& turns) {
  if (pair.control && reach_of(pair.control, turns.margin) > 1 + turns.margin) {
    return "the base against itself moved, too";
  }
  return pair.ratio_low > 1 || pair.ratio_high < 1 ? "the difference may be within the margin"
                                                   : "the interval goes across 1";
}

void judge(Pair& pair, const std::vector<double>& logs, const Turns& turns) {
  const auto ratio = ratio_of(logs, turns.confidence);
  pair.base_rounds = pair.changed_rounds = logs.size();
  if (!ratio) {
    pair.ratio = pair.ratio_low = pair.ratio_high =
        logs.empty() ? pair.changed->median / pair.base->median : std::exp(measure::median(logs));
    pair.reason = std::to_string(logs.size()) +
                  (logs.size() == 1 ? " round gives" : " rounds give") + " no interval; --rounds " +
                  std::to_string(rounds_needed(turns.confidence)) + " would";
    return;
  }
  pair.ratio = ratio->ratio;
  pair.ratio_low = ratio->low;
  pair.ratio_high = ratio->high;
  pair.disjoint = pair.ratio_low > 1 || pair.ratio_high < 1;
  const double reach = reach_of(pair.control, turns.margin);
  pair.verdict = verdict_of(pair.ratio_low, pair.ratio_high, reach);
  // Within what the machine moved by, nothing is known to be the same.
  if (pair.verdict == Verdict::same && reach > 1 + turns.margin) pair.verdict = Verdict::unclear;
  if (pair.verdict == Verdict::unclear) pair.reason = why_unclear(pair, turns);
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

Pair untimed(const Trio& trio) {
  Pair pair;
  pair.name = trio.name;
  pair.reason = "base: " + state_of(trio.base) + "; new: " + state_of(trio.changed);
  return pair;
}

Pair timed(const Trio& trio, const std::string& what, const Turns& turns) {
  Pair pair;
  pair.id = trio.base->at("id");
  pair.name = trio.name;
  pair.what = what;
  const Json& base = *timing_of(trio.base, what);
  const Json& changed = *timing_of(trio.changed, what);
  pair.base = spread_of(base);
  pair.changed = spread_of(changed);
  if (const Json* control = timing_of(trio.control, what)) {
    pair.control = ratio_of(log_ratios(base, *control), turns.confidence);
  }
  judge(pair, log_ratios(base, changed), turns);
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
