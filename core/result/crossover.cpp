#include "core/result/crossover.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "core/statistics.hpp"

namespace attnbench::result {
namespace {

constexpr double open_end = std::numeric_limits<double>::infinity();

/// One round's answer on the axis of lengths.
struct Ranked {
  double low = 0;
  double high = open_end;
  std::string verdict;

  double middle() const { return low > 0 && high < open_end ? std::sqrt(low * high) : low; }
};

bool is_ranked(const std::string& verdict) {
  return verdict == "found" || verdict == "below" || verdict == "above" || verdict == "none";
}

/// Below before found before above, whatever the lengths.
int order_of(const Ranked& round) {
  if (round.verdict == "below") return 0;
  return round.verdict == "found" ? 1 : 2;
}

Ranked ranked(const CrossoverRound& round) {
  return {static_cast<double>(round.low.value_or(0)),
          round.high ? static_cast<double>(*round.high) : open_end, round.verdict};
}

/// Ends over rounds, and what kind of interval they make.
struct Ends {
  double low = 0;
  double high = open_end;
  const char* interval = "search";
};

Ends ends_of(const std::vector<Ranked>& rounds) {
  std::vector<double> lows;
  std::vector<double> highs;
  for (const Ranked& round : rounds) {
    lows.push_back(round.low);
    highs.push_back(round.high);
  }
  if (rounds.size() == 1) return {lows[0], highs[0], "search"};
  const auto low = median_interval(lows);
  const auto high = median_interval(highs);
  if (low && high) return {low->low, high->high, "order"};
  return {*std::min_element(lows.begin(), lows.end()),
          *std::max_element(highs.begin(), highs.end()), "range"};
}

void put_ends(Crossover& joined, const Ends& ends) {
  if (ends.low > 0) joined.low = ends.low;
  if (ends.high < open_end) joined.high = ends.high;
  joined.interval = ends.interval;
}

/// Joins the rounds that found a place for the crossover.
void put_ranked(Crossover& joined, std::vector<Ranked> rounds) {
  std::sort(rounds.begin(), rounds.end(), [](const Ranked& a, const Ranked& b) {
    return std::make_pair(order_of(a), a.middle()) < std::make_pair(order_of(b), b.middle());
  });
  const Ranked& lower = rounds[(rounds.size() - 1) / 2];
  const Ranked& upper = rounds[rounds.size() / 2];
  if (lower.verdict == "found" && upper.verdict == "found") {
    joined.verdict = "found";
    joined.length = std::sqrt(lower.middle() * upper.middle());
  } else if (order_of(lower) == 0 && order_of(upper) == 2) {
    joined.verdict = "undecided";
    return;
  } else {
    // The middle round outside the searched range: half of the rounds found no length.
    const Ranked& outside = order_of(lower) == 0 ? lower : upper;
    joined.verdict = outside.verdict;
    const auto none = std::count_if(rounds.begin(), rounds.end(),
                                    [](const Ranked& one) { return one.verdict == "none"; });
    const bool mostly_none = 2 * none > static_cast<std::ptrdiff_t>(rounds.size());
    if (order_of(outside) == 2) joined.verdict = mostly_none ? "none" : "above";
  }
  put_ends(joined, ends_of(rounds));
}

/// The verdict that more than half of the rounds came to, if it is one without a rank.
std::string unranked_majority(const std::map<std::string, std::int64_t>& counts,
                              std::size_t rounds) {
  for (const auto& [verdict, count] : counts) {
    if (!is_ranked(verdict) && 2 * static_cast<std::size_t>(count) > rounds) return verdict;
  }
  return "";
}

/// The first round with the verdict, else the first.
const CrossoverRound& representative(const std::vector<CrossoverRound>& rounds,
                                     const std::string& verdict) {
  const auto found = std::find_if(rounds.begin(), rounds.end(), [&](const CrossoverRound& round) {
    return round.verdict == verdict;
  });
  return found == rounds.end() ? rounds.front() : *found;
}

/// More than half of the rounds must have a fit.
std::optional<Efficiency> efficiency_over(const std::vector<CrossoverRound>& rounds) {
  std::vector<double> lengths, exact, mechanism;
  for (const CrossoverRound& round : rounds) {
    if (!round.efficiency) continue;
    lengths.push_back(round.efficiency->length);
    exact.push_back(round.efficiency->r2_exact);
    mechanism.push_back(round.efficiency->r2_mechanism);
  }
  if (2 * lengths.size() <= rounds.size()) return std::nullopt;
  const auto [low, high] = std::minmax_element(lengths.begin(), lengths.end());
  return Efficiency{median(lengths), *low, *high, median(exact), median(mechanism)};
}

std::string whole(double length) { return std::to_string(std::lround(length)); }

/// " (290 to 352)", with an open end said as such; empty without ends.
std::string ends_text(const Crossover& crossover) {
  const auto& [low, high] = std::tie(crossover.low, crossover.high);
  if (low && high) return " (" + whole(*low) + " to " + whole(*high) + ")";
  if (low) return " (from " + whole(*low) + ")";
  return high ? " (up to " + whole(*high) + ")" : "";
}

}  // namespace

ATTNBENCH_DESCRIBED_CODEC(Crossing) {
  JSON_AT(low, high);
  JSON_KEY(maybe, faster_from_high, "exact or mechanism");
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Efficiency) {
  JSON_KEY(usual, length, "where both fitted lines of time meet");
  JSON_USUAL(r2_exact, r2_mechanism);
  JSON_KEY(maybe, low, "over rounds");
  JSON_MAYBE(high);
  JSON_IGNORE_REST;
}

ATTNBENCH_DESCRIBED_CODEC(ComparedLength) {
  JSON_MAYBE(length);
  JSON_KEY(maybe, faster, "exact, mechanism, undecided or untried");
  JSON_KEY(maybe, reason, "why it was not tried; there are no numbers then");
  JSON_MAYBE(seconds, exact_seconds);
  JSON_KEY(maybe, ratio, "the mechanism's time over the exact one's");
  JSON_KEY(maybe, ratio_low, "99 % interval");
  JSON_MAYBE(ratio_high, pairs);
  JSON_KEY(maybe, stop,
           "decided, equal, time, samples, or disturbed: too few pairs of which no side was "
           "preempted");
  JSON_MAYBE(implementation, against);
  JSON_REST;
}

/// What a round and its cell share.
static void search_fields(auto& json, auto& value) {
  JSON_KEY(at, verdict, "found, below, above, none, reverse, several or undecided");
  JSON_AT(implementation);
  JSON_KEY(at, against, "MECHANISM/IMPLEMENTATION");
  JSON_KEY(at, length_minimum, "searched, by every round", Rule::positive);
  JSON_KEY(at, length_maximum, "", Rule::positive);
  JSON_KEY(maybe, low, "absent where it is open", Rule::positive);
  JSON_KEY(maybe, high, "", Rule::positive);
  JSON_MAYBE(stopped, crossings, efficiency);
}

ATTNBENCH_DESCRIBED_CODEC(CrossoverRound) {
  search_fields(json, value);
  JSON_MAYBE(disturbed, lengths);
  JSON_REST;
}

ATTNBENCH_DESCRIBED_CODEC(Crossover) {
  search_fields(json, value);
  JSON_KEY(maybe, disturbed, "rounds that do not count");
  JSON_KEY(maybe, verdicts, "rounds by verdict");
  JSON_MAYBE(length);
  JSON_KEY(maybe, interval, "order, range or search");
  JSON_AT(rounds);
  JSON_REST;
}

double Crossing::middle() const {
  return std::sqrt(static_cast<double>(low) * static_cast<double>(high));
}

bool is_disturbed(const CrossoverRound& round) {
  if (round.disturbed) return *round.disturbed;
  std::size_t compared = 0;
  std::size_t stopped = 0;
  for (const ComparedLength& length : round.lengths.value_or(std::vector<ComparedLength>{})) {
    compared += !length.stop.empty();
    stopped += length.stop == "disturbed";
  }
  return 2 * stopped > compared;
}

std::size_t Crossover::disturbed_rounds() const {
  return static_cast<std::size_t>(
      std::count_if(rounds.begin(), rounds.end(),
                    [](const CrossoverRound& round) { return is_disturbed(round); }));
}

Crossover crossover_over(const std::vector<CrossoverRound>& rounds) {
  std::vector<CrossoverRound> counted;
  std::copy_if(rounds.begin(), rounds.end(), std::back_inserter(counted),
               [](const CrossoverRound& round) { return !is_disturbed(round); });
  Crossover joined;
  joined.rounds = rounds;
  std::vector<Ranked> with_rank;
  std::vector<Ranked> reverse;
  for (const CrossoverRound& round : counted) {
    ++joined.verdicts[round.verdict];
    if (is_ranked(round.verdict)) with_rank.push_back(ranked(round));
    if (round.verdict == "reverse") reverse.push_back(ranked(round));
  }
  if (counted.size() < rounds.size()) joined.disturbed = rounds.size() - counted.size();
  joined.verdict = unranked_majority(joined.verdicts, counted.size());
  if (joined.verdict == "reverse") {
    put_ends(joined, ends_of(reverse));
  } else if (joined.verdict.empty() && 2 * with_rank.size() > counted.size()) {
    put_ranked(joined, std::move(with_rank));
  } else if (joined.verdict.empty()) {
    joined.verdict = "undecided";
  }
  const std::vector<CrossoverRound>& considered = counted.empty() ? rounds : counted;
  const CrossoverRound& said = representative(considered, joined.verdict);
  joined.implementation = said.implementation;
  joined.against = said.against;
  joined.stopped = said.stopped;
  if (!counted.empty()) joined.crossings = said.crossings;
  // Searched by every round: the ends that all of them reached.
  joined.length_minimum = considered.front().length_minimum;
  joined.length_maximum = considered.front().length_maximum;
  for (const CrossoverRound& round : considered) {
    joined.length_minimum = std::max(joined.length_minimum, round.length_minimum);
    joined.length_maximum = std::min(joined.length_maximum, round.length_maximum);
  }
  joined.efficiency = efficiency_over(counted);
  return joined;
}

Values crossover_metrics(const Crossover& crossover) {
  Values metrics;
  const auto add = [&](const std::string& name, double length, const std::optional<double>& low,
                       const std::optional<double>& high) {
    metrics[name] = length;
    if (low) metrics[name + "_low"] = *low;
    if (high) metrics[name + "_high"] = *high;
  };
  if (crossover.length) {
    add("crossover_length", *crossover.length, crossover.low, crossover.high);
  }
  if (const auto& fit = crossover.efficiency) {
    add("efficiency_length", fit->length, fit->low, fit->high);
  }
  return metrics;
}

std::string crossover_text(const Crossover& crossover) {
  const std::string& verdict = crossover.verdict;
  if (verdict == "found") return whole(crossover.length.value()) + ends_text(crossover);
  if (verdict == "below" && crossover.high) return "below " + whole(*crossover.high);
  if (verdict == "above" && crossover.low) return "above " + whole(*crossover.low);
  if (verdict == "none") return "none: slower up to " + std::to_string(crossover.length_maximum);
  if (verdict == "reverse") return "reverse: slower from" + ends_text(crossover) + " on";
  if (verdict == "undecided" && crossover.disturbed) {
    return "undecided, " + std::to_string(*crossover.disturbed) + " of " +
           std::to_string(crossover.rounds.size()) + " rounds disturbed";
  }
  if (verdict != "several") return verdict;
  std::string text = "several:";
  for (const Crossing& crossing : crossover.crossings.value_or(std::vector<Crossing>{})) {
    text += (text.back() == ':' ? " " : ", ") + whole(crossing.middle());
  }
  return text;
}

}  // namespace attnbench::result
