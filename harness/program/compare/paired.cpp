#include "harness/program/compare/paired.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "core/text/format.hpp"
#include "harness/program/compare/look.hpp"
#include "harness/program/run/folder/combine.hpp"

namespace attnbench::compare {
namespace {

using result::CellRecord;

/// What the cells of one size have in common: task, device, and the values of all axes.
std::string size_of(const CellRecord& cell) {
  Json key = {cell.task_label, cell.device};
  for (const std::string& name : cell.varies.value_or(std::vector<std::string>{})) {
    key.push_back(reports::value_of(cell, name).value_or(Json()));
  }
  return key.dump();
}

std::vector<Trio> trios_of(const result::Result& result, const std::vector<Match>& matches) {
  std::map<std::string, const CellRecord*> by_id;
  for (const CellRecord& cell : result.cells) by_id[cell.id] = &cell;
  const auto find = [&](const std::string& id) {
    const auto found = by_id.find(id);
    return found == by_id.end() ? nullptr : found->second;
  };
  std::vector<Trio> trios;
  for (const Match& match : matches) {
    trios.push_back({match.name, find(match.base), find(match.changed), find(match.control)});
  }
  return trios;
}

}  // namespace

ATTNBENCH_JSON_CODEC(Match) { JSON_AT(name, base, changed, control); }

std::vector<Cell> in_turns(const std::vector<Cell>& cells) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<Cell>> by_size;
  for (const Cell& cell : cells) {
    const std::string size = size_of(run::planned_record(cell, {}));
    std::vector<Cell>& same = by_size[size];
    if (same.empty()) order.push_back(size);
    same.push_back(cell);
  }
  std::vector<Cell> turned;
  for (const std::string& size : order) {
    turned.insert(turned.end(), by_size[size].begin(), by_size[size].end());
  }
  return turned;
}

std::vector<Match> matches_by_label(const result::Result& result, const Sides& sides) {
  std::vector<Match> matches;
  std::map<std::string, std::size_t> place;
  for (const reports::Panel& panel : reports::panels(result)) {
    for (const reports::Placed& placed : panel.cells) {
      const CellRecord& cell = *placed.cell;
      const std::string& label = cell.label;
      const auto [found, fresh] = place.emplace(size_of(cell), matches.size());
      if (fresh) {
        const std::string options =
            placed.series.substr(std::min(placed.series.size(), label.size()));
        matches.push_back({panel.task_label + options + place_name(panel, placed), "", "", ""});
      }
      Match& match = matches[found->second];
      (label == sides.base      ? match.base
       : label == sides.changed ? match.changed
                                : match.control) = cell.id;
    }
  }
  return matches;
}

Comparison paired(const result::Result& result, const Sides& sides,
                  const std::vector<Match>& matches, const Gate& gate) {
  const std::vector<Trio> trios = trios_of(result, matches);
  std::size_t count = 0;
  for (const Trio& trio : trios) count += common_timings(trio).size();
  Comparison comparison;
  comparison.same_machine = true;
  comparison.timed = count;
  comparison.turns = Turns{sides.base,
                           sides.changed,
                           gate.relative_change,
                           confidence_of_each(gate, count),
                           result.run.threads.value_or(0),
                           gate};
  for (const Trio& trio : trios) {
    const std::vector<std::string> whats = common_timings(trio);
    if (whats.empty()) comparison.pairs.push_back(untimed(trio));
    for (const std::string& what : whats) {
      comparison.pairs.push_back(timed(trio, what, *comparison.turns));
      comparison.disjoint += comparison.pairs.back().disjoint ? 1 : 0;
    }
  }
  return comparison;
}

Comparison paired(const result::Result& result, const Sides& sides, double margin) {
  Gate gate;
  gate.relative_change = margin;
  gate.rounds = gate.rounds_most = std::numeric_limits<int>::max();
  gate.confirm = 0;
  return paired(result, sides, matches_by_label(result, sides), gate);
}

namespace {

/// Rounds that a match wants.
struct Wish {
  const Match* match = nullptr;
  int rounds = 0;         ///< in all
  double seconds = 0;     ///< until the look that they belong to ends
  bool suspects = false;  ///< after a look, a change that passes the bars
};

/// The rounds of the look that ends with `rounds` or has a stage there.
int end_of_look(const Gate& gate, int rounds) {
  for (const int end : looks(gate)) {
    if (rounds <= end) return end;
  }
  return gate.rounds_most;
}

/// Whether the pair has had its first look, and its ratio, the interval aside, is beyond the bars.
bool suspect(const Pair& pair, const Gate& gate) {
  if (pair.rounds < static_cast<std::size_t>(gate.rounds) || !pair.base) return false;
  const SpeedVerdict alone =
      verdict_of(pair.ratio, pair.ratio, 1 + bar_of(gate, pair.base->median));
  return alone == SpeedVerdict::slow || alone == SpeedVerdict::fast;
}

double seconds_of_round(const Match& match, const Spending& spending) {
  double seconds = 0;
  for (const std::string& id : {match.base, match.changed, match.control}) {
    const auto found = spending.of_cells.find(id);
    if (found != spending.of_cells.end()) seconds += found->second;
  }
  return seconds;
}

std::vector<Wish> wishes_of(const Comparison& comparison, const std::vector<Match>& matches,
                            const Spending& spending) {
  const Gate& gate = comparison.turns.value().gate;
  std::vector<Wish> wishes;
  for (const Match& match : matches) {
    Wish wish{&match};
    for (const Pair& pair : comparison.pairs) {
      if (pair.id != match.base || pair.rounds_wanted == 0) continue;
      if (wish.rounds == 0 || pair.rounds_wanted < wish.rounds) wish.rounds = pair.rounds_wanted;
      const auto left = end_of_look(gate, pair.rounds_wanted) - static_cast<double>(pair.rounds);
      wish.seconds = std::max(wish.seconds, left * seconds_of_round(match, spending));
      wish.suspects = wish.suspects || suspect(pair, gate);
    }
    if (wish.rounds > 0) wishes.push_back(wish);
  }
  return wishes;
}

/// Keeps the wishes whose looks fit into `seconds`: suspected changes first, then the shortest.
void keep_what_ends_in_time(std::vector<Wish>& wishes, double seconds) {
  std::stable_sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) {
    return a.suspects != b.suspects ? a.suspects : a.seconds < b.seconds;
  });
  std::erase_if(wishes, [&seconds](const Wish& wish) {
    if (wish.seconds > seconds) return true;
    seconds -= wish.seconds;
    return false;
  });
}

void take(run::Further& next, const Match& match) {
  next.cells.insert({match.base, match.changed, match.control});
}

run::Further rounds_of_looks(const Comparison& comparison, const std::vector<Match>& matches,
                             const Spending& spending) {
  const Gate& gate = comparison.turns.value().gate;
  std::vector<Wish> wishes = wishes_of(comparison, matches, spending);
  const std::size_t all = wishes.size();
  if (gate.seconds_most > 0) {
    keep_what_ends_in_time(wishes, gate.seconds_most - spending.seconds);
  }
  run::Further next;
  if (wishes.size() < all) {
    next.note = std::to_string(all - wishes.size()) + " of " + std::to_string(all) +
                " cells that want more rounds get none: they would end after the gate's " +
                text::human_seconds(gate.seconds_most) + ".";
  }
  // After an interruption, or where time was short, some cells are behind the others.
  for (const Wish& wish : wishes) {
    if (next.end == 0 || wish.rounds < next.end) next.end = wish.rounds;
  }
  for (const Wish& wish : wishes) {
    if (wish.rounds == next.end) take(next, *wish.match);
  }
  for (const int rounds : looks(gate)) {
    if (rounds < next.end) next.begin = rounds;
  }
  return next;
}

}  // namespace

std::optional<run::Further> further(const Comparison& comparison, const std::vector<Match>& matches,
                                    const Spending& spending) {
  run::Further next = rounds_of_looks(comparison, matches, spending);
  if (!next.cells.empty()) return next;
  for (const Match& match : matches) {
    const bool wanted =
        std::any_of(comparison.pairs.begin(), comparison.pairs.end(),
                    [&](const Pair& pair) { return pair.confirm_wanted && pair.id == match.base; });
    if (wanted) take(next, match);
  }
  if (next.cells.empty()) return std::nullopt;
  const Gate& gate = comparison.turns.value().gate;
  next.begin = gate.rounds_most;
  next.end = gate.rounds_most + gate.confirm;
  next.drawn = true;
  return next;
}

void note_time_limit(Comparison& comparison) {
  const Gate& gate = comparison.turns.value().gate;
  const std::string limit = "the gate's " + text::human_seconds(gate.seconds_most);
  for (Pair& pair : comparison.pairs) {
    if (pair.rounds_wanted == 0) continue;
    if (pair.rounds < static_cast<std::size_t>(gate.rounds)) {
      pair.reason = "only " + std::to_string(pair.rounds) + " of the first " +
                    std::to_string(gate.rounds) + " rounds: the others would have ended after " +
                    limit;
    } else {
      pair.reason += "; more rounds would have ended after " + limit;
    }
  }
}

ExitCode exit_code(const Comparison& comparison, bool gate) {
  const auto any = [&](SpeedVerdict verdict) {
    return std::any_of(comparison.pairs.begin(), comparison.pairs.end(),
                       [&](const Pair& pair) { return pair.verdict == verdict; });
  };
  if (gate && any(SpeedVerdict::slow)) return ExitCode::failed;
  const bool judged =
      any(SpeedVerdict::slow) || any(SpeedVerdict::fast) ||
      std::any_of(comparison.pairs.begin(), comparison.pairs.end(),
                  [](const Pair& pair) { return pair.verdict == SpeedVerdict::same && pair.base; });
  return !judged || any(SpeedVerdict::unclear) ? ExitCode::undecided : ExitCode::done;
}

}  // namespace attnbench::compare
