#include "core/result/crossover.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "core/result/record.hpp"
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

Ranked ranked(const Json& round) {
  return {round.value("low", 0.0), round.value("high", open_end),
          round["verdict"].get<std::string>()};
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
  const auto low = measure::median_interval(lows);
  const auto high = measure::median_interval(highs);
  if (low && high) return {low->low, high->high, "order"};
  return {*std::min_element(lows.begin(), lows.end()),
          *std::max_element(highs.begin(), highs.end()), "range"};
}

void put_ends(Json& record, const Ends& ends) {
  if (ends.low > 0) record["low"] = ends.low;
  if (ends.high < open_end) record["high"] = ends.high;
  record["interval"] = ends.interval;
}

/// Joins the rounds that found a place for the crossover.
void put_ranked(Json& record, std::vector<Ranked> rounds) {
  std::sort(rounds.begin(), rounds.end(), [](const Ranked& a, const Ranked& b) {
    return std::make_pair(order_of(a), a.middle()) < std::make_pair(order_of(b), b.middle());
  });
  const Ranked& lower = rounds[(rounds.size() - 1) / 2];
  const Ranked& upper = rounds[rounds.size() / 2];
  if (lower.verdict == "found" && upper.verdict == "found") {
    record["verdict"] = "found";
    record["length"] = std::sqrt(lower.middle() * upper.middle());
  } else if (order_of(lower) == 0 && order_of(upper) == 2) {
    record["verdict"] = "undecided";
    return;
  } else {
    // Of the middle two the one outside of what was searched: half of the rounds found no length.
    const Ranked& outside = order_of(lower) == 0 ? lower : upper;
    record["verdict"] = outside.verdict;
    const auto none = std::count_if(rounds.begin(), rounds.end(),
                                    [](const Ranked& one) { return one.verdict == "none"; });
    const bool mostly_none = 2 * none > static_cast<std::ptrdiff_t>(rounds.size());
    if (order_of(outside) == 2) record["verdict"] = mostly_none ? "none" : "above";
  }
  put_ends(record, ends_of(rounds));
}

/// The verdict that more than half of the rounds came to, if it is one without a rank.
std::string unranked_majority(const std::map<std::string, int>& counts, std::size_t rounds) {
  for (const auto& [verdict, count] : counts) {
    if (!is_ranked(verdict) && 2 * static_cast<std::size_t>(count) > rounds) return verdict;
  }
  return "";
}

/// The first round with the verdict, else the first.
const Json& representative(const std::vector<Json>& rounds, const std::string& verdict) {
  const auto found = std::find_if(rounds.begin(), rounds.end(),
                                  [&](const Json& round) { return round["verdict"] == verdict; });
  return found == rounds.end() ? rounds.front() : *found;
}

void put_efficiency(Json& record, const std::vector<Json>& rounds) {
  std::map<std::string, std::vector<double>> values;
  for (const Json& round : rounds) {
    const Json efficiency = round.value("efficiency", Json::object());
    for (const auto& [name, value] : efficiency.items()) values[name].push_back(value);
  }
  // More than half of the rounds must have a fit.
  if (2 * values["length"].size() <= rounds.size()) return;
  const std::vector<double>& lengths = values["length"];
  const auto [low, high] = std::minmax_element(lengths.begin(), lengths.end());
  record["efficiency"] = {{"length", measure::median(lengths)},
                          {"low", *low},
                          {"high", *high},
                          {"r2_exact", measure::median(values["r2_exact"])},
                          {"r2_mechanism", measure::median(values["r2_mechanism"])}};
}

std::string whole(double length) { return std::to_string(std::lround(length)); }

/// " (290 to 352)", with an open end said as such; empty without ends.
std::string ends_text(const Crossover& crossover) {
  const auto& [low, high] = std::tie(crossover.low, crossover.high);
  if (low && high) return " (" + whole(*low) + " to " + whole(*high) + ")";
  if (low) return " (from " + whole(*low) + ")";
  return high ? " (up to " + whole(*high) + ")" : "";
}

std::optional<double> number_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  return found->get<double>();
}

}  // namespace

Json crossover_over(const std::vector<Json>& rounds) {
  std::vector<Json> counted;
  std::copy_if(rounds.begin(), rounds.end(), std::back_inserter(counted),
               [](const Json& round) { return !is_disturbed_round(round); });
  std::map<std::string, int> counts;
  std::vector<Ranked> with_rank;
  std::vector<Ranked> reverse;
  for (const Json& round : counted) {
    const std::string verdict = round["verdict"].get<std::string>();
    ++counts[verdict];
    if (is_ranked(verdict)) with_rank.push_back(ranked(round));
    if (verdict == "reverse") reverse.push_back(ranked(round));
  }
  Json record = {{"verdict", unranked_majority(counts, counted.size())},
                 {"verdicts", counts},
                 {"rounds", rounds}};
  if (counted.size() < rounds.size()) record["disturbed"] = rounds.size() - counted.size();
  if (record["verdict"] == "reverse") {
    put_ends(record, ends_of(reverse));
  } else if (record["verdict"] == "" && 2 * with_rank.size() > counted.size()) {
    put_ranked(record, std::move(with_rank));
  } else if (record["verdict"] == "") {
    record["verdict"] = "undecided";
  }
  const std::vector<Json>& considered = counted.empty() ? rounds : counted;
  const Json& said = representative(considered, record["verdict"]);
  for (const char* part : {"implementation", "against", "crossings", "stopped"}) {
    if (said.contains(part)) record[part] = said[part];
  }
  if (counted.empty()) record.erase("crossings");
  // Searched by every round: the ends that all of them reached.
  record["length_minimum"] = considered.front()["length_minimum"];
  record["length_maximum"] = considered.front()["length_maximum"];
  for (const Json& round : considered) {
    record["length_minimum"] = std::max(record["length_minimum"], round["length_minimum"]);
    record["length_maximum"] = std::min(record["length_maximum"], round["length_maximum"]);
  }
  put_efficiency(record, counted);
  return record;
}

Json crossover_metrics(const Json& crossover) {
  Json metrics = Json::object();
  if (crossover.contains("length")) {
    metrics["crossover_length"] = crossover["length"];
    if (crossover.contains("low")) metrics["crossover_length_low"] = crossover["low"];
    if (crossover.contains("high")) metrics["crossover_length_high"] = crossover["high"];
  }
  if (crossover.contains("efficiency")) {
    const Json& efficiency = crossover["efficiency"];
    metrics["efficiency_length"] = efficiency["length"];
    metrics["efficiency_length_low"] = efficiency["low"];
    metrics["efficiency_length_high"] = efficiency["high"];
  }
  return metrics;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Crossing, low, high)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Efficiency, length, r2_exact, r2_mechanism)

double Crossing::middle() const { return std::sqrt(low * high); }

Crossover crossover_from(const Json& crossover) {
  Crossover made;
  made.verdict = crossover.at("verdict");
  made.length = number_in(crossover, "length");
  made.low = number_in(crossover, "low");
  made.high = number_in(crossover, "high");
  made.interval = crossover.value("interval", "");
  made.implementation = crossover.value("implementation", "");
  made.against = crossover.value("against", "");
  made.length_minimum = crossover.value("length_minimum", 0.0);
  made.length_maximum = crossover.value("length_maximum", 0.0);
  made.crossings = crossover.value("crossings", std::vector<Crossing>{});
  if (crossover.contains("efficiency")) made.efficiency = crossover["efficiency"].get<Efficiency>();
  const Json rounds = crossover.value("rounds", Json::array());
  made.rounds = rounds.size();
  made.disturbed = count_disturbed(rounds);
  made.left_out = crossover.value("disturbed", std::size_t{0});
  return made;
}

std::optional<Crossover> crossover_of(const Json& cell) {
  const auto found = cell.find("crossover");
  if (found == cell.end()) return std::nullopt;
  return crossover_from(*found);
}

std::string crossover_text(const Crossover& crossover) {
  const std::string& verdict = crossover.verdict;
  if (verdict == "found") return whole(crossover.length.value()) + ends_text(crossover);
  if (verdict == "below" && crossover.high) return "below " + whole(*crossover.high);
  if (verdict == "above" && crossover.low) return "above " + whole(*crossover.low);
  if (verdict == "none") return "none: slower up to " + whole(crossover.length_maximum);
  if (verdict == "reverse") return "reverse: slower from" + ends_text(crossover) + " on";
  if (verdict == "undecided" && crossover.left_out > 0) {
    return "undecided, " + std::to_string(crossover.left_out) + " of " +
           std::to_string(crossover.rounds) + " rounds disturbed";
  }
  if (verdict != "several") return verdict;
  std::string text = "several:";
  for (const Crossing& crossing : crossover.crossings) {
    text += (text.back() == ':' ? " " : ", ") + whole(crossing.middle());
  }
  return text;
}

}  // namespace attnbench::result
