// A comparison for people (a forest of ratios) and for programs (JSON).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/text/format.hpp"
#include "harness/compare/compare.hpp"

namespace attnbench::compare {
namespace {

using result::Letters;

constexpr std::size_t bar_width = 21;  // odd, so that a ratio of 1 has a column of its own

std::string three_decimals(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", share * 100);
  return text.data();
}

/// Of disturbed rounds alone there are times, and no ratio. A file may hold times that nobody can
/// measure: the logarithm of each bound is taken.
bool has_ratio(const Pair& pair) {
  const auto usable = [](double ratio) { return std::isfinite(ratio) && ratio > 0; };
  return pair.base && pair.changed && usable(pair.ratio) && usable(pair.ratio_low) &&
         usable(pair.ratio_high);
}

/// The farthest that any bound is from 1, as a logarithm; at least 5 %.
double reach_of(const std::vector<Pair>& pairs) {
  double reach = std::log(1.05);
  for (const Pair& pair : pairs) {
    if (!has_ratio(pair)) continue;
    reach = std::max(
        {reach, std::fabs(std::log(pair.ratio_low)), std::fabs(std::log(pair.ratio_high))});
  }
  return reach;
}

std::string bar(const Pair& pair, double reach, bool utf8) {
  if (!has_ratio(pair)) return std::string(bar_width, ' ');
  const auto column = [&](double ratio) {
    const double share = std::clamp(std::log(ratio) / reach, -1.0, 1.0);
    return static_cast<std::size_t>(std::lround((share + 1) / 2 * (bar_width - 1)));
  };
  std::array<const char*, bar_width> marks{};
  marks.fill(" ");
  marks[bar_width / 2] = utf8 ? "│" : "|";
  for (std::size_t i = column(pair.ratio_low); i <= column(pair.ratio_high); ++i) {
    marks[i] = utf8 ? "─" : "-";
  }
  marks[column(pair.ratio)] = utf8 ? "●" : "o";
  std::string text;
  for (const char* mark : marks) text += mark;
  return text;
}

std::string ratio_text(const Pair& pair) {
  if (!has_ratio(pair)) return "";
  return three_decimals(pair.ratio) + " [" + three_decimals(pair.ratio_low) + ", " +
         three_decimals(pair.ratio_high) + "]";
}

std::string name_of(const Pair& pair) {
  return pair.what.empty() ? pair.name : pair.name + " " + pair.what;
}

std::string line_of(const Pair& pair, std::size_t name_width, double reach, bool utf8) {
  const Letters letters = utf8 ? Letters::utf8 : Letters::ascii;
  const bool timed = pair.base && pair.changed;
  std::string line =
      result::pad_right(result::shorten(name_of(pair), name_width, letters), name_width);
  if (timed) {
    const std::string before = result::human_seconds(pair.base->median, letters);
    const std::string after = result::human_seconds(pair.changed->median, letters);
    line += "  " + result::pad_left(before, 8) + "  " + result::pad_left(after, 8) + "  " +
            result::pad_right(ratio_text(pair), 21) + "  " + bar(pair, reach, utf8);
  }
  line.append("  ").append(to_string(pair.verdict));
  if (!pair.reason.empty()) line.append("  ").append(pair.reason);
  if (pair.left_out > 0 && pair.verdict != Verdict::unclear) {
    line.append("  without ").append(std::to_string(pair.left_out));
    line.append(" of ").append(std::to_string(pair.rounds)).append(" rounds, disturbed");
  }
  return line + "\n";
}

std::string note_on(const Turns& turns) {
  return "Each ratio is the median over rounds in which both took turns, in brackets its interval "
         "(" +
         percent(turns.confidence) + "); SAME is within " + percent(turns.margin) + ".\n";
}

/// How many rounds count for nothing; empty where all do.
std::string left_out_words(const Comparison& comparison) {
  std::size_t rounds = 0;
  std::size_t left_out = 0;
  for (const Pair& pair : comparison.pairs) {
    rounds += pair.rounds;
    left_out += pair.left_out;
  }
  if (left_out == 0) return "";
  return "Left out: " + std::to_string(left_out) + " of " + std::to_string(rounds) +
         " rounds, in which other programs had the CPU. `attnbench doctor` says who is busy.\n";
}

std::string summary(const Comparison& comparison) {
  std::string text;
  for (const Verdict verdict : {Verdict::slow, Verdict::fast, Verdict::same, Verdict::unclear,
                                Verdict::added, Verdict::gone}) {
    const auto count = std::count_if(comparison.pairs.begin(), comparison.pairs.end(),
                                     [&](const Pair& pair) { return pair.verdict == verdict; });
    if (count == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + " " + to_string(verdict);
  }
  text += "\n" + left_out_words(comparison);
  if (comparison.turns) return text + note_on(*comparison.turns);
  if (comparison.timed == 0) return text;
  const double share =
      static_cast<double>(comparison.disjoint) / static_cast<double>(comparison.timed);
  text += "Intervals over rounds are disjoint in " + std::to_string(comparison.disjoint) + " of " +
          std::to_string(comparison.timed) + " timings (" + percent(share) +
          "); as many rounds of unchanged code would give " +
          percent(comparison.disjoint_by_chance) + ".\n";
  return text;
}

Json json_of(const Spread& spread) {
  return {{"median_seconds", spread.median},
          {"low_seconds", spread.low},
          {"high_seconds", spread.high}};
}

Json json_of(const Pair& pair) {
  Json json = {{"id", pair.id}, {"name", pair.name}, {"verdict", to_string(pair.verdict)}};
  if (!pair.what.empty()) json["timing"] = pair.what;
  if (!pair.reason.empty()) json["reason"] = pair.reason;
  if (pair.rounds > 0) json["rounds"] = pair.rounds;
  if (pair.rounds > 0) json["rounds_left_out"] = pair.left_out;
  if (!pair.base || !pair.changed) return json;
  json["base"] = json_of(*pair.base);
  json["base"]["rounds"] = pair.base_rounds;
  json["new"] = json_of(*pair.changed);
  json["new"]["rounds"] = pair.changed_rounds;
  if (!has_ratio(pair)) return json;
  json["ratio"] = pair.ratio;
  json["ratio_low"] = pair.ratio_low;
  json["ratio_high"] = pair.ratio_high;
  if (pair.control) {
    json["control"] = {{"ratio", pair.control->ratio},
                       {"ratio_low", pair.control->low},
                       {"ratio_high", pair.control->high}};
  }
  if (pair.calibrated_ratio > 0) json["calibrated_ratio"] = pair.calibrated_ratio;
  json["disjoint"] = pair.disjoint;
  return json;
}

Json json_of(const Turns& turns) {
  return {{"base", turns.base},
          {"new", turns.changed},
          {"margin", turns.margin},
          {"confidence", turns.confidence}};
}

}  // namespace

Json to_json(const Comparison& comparison) {
  Json pairs = Json::array();
  for (const Pair& pair : comparison.pairs) pairs.push_back(json_of(pair));
  if (comparison.turns) {
    return {{"schema", 1}, {"turns", json_of(*comparison.turns)}, {"pairs", pairs}};
  }
  return {{"schema", 1},
          {"same_machine", comparison.same_machine},
          {"differences", comparison.differences},
          {"pairs", pairs},
          {"timed", comparison.timed},
          {"disjoint", comparison.disjoint},
          {"disjoint_by_chance", comparison.disjoint_by_chance}};
}

std::string to_text(const Comparison& comparison, std::size_t width, bool utf8) {
  std::string text;
  if (comparison.turns) {
    text += "base  " + comparison.turns->base + "\nnew   " + comparison.turns->changed + "\n";
  }
  for (const std::string& difference : comparison.differences) {
    text.append("differs: ").append(difference).append("\n");
  }
  if (!text.empty()) text += "\n";
  // Times, ratio, bar and verdict take 74 columns; a reason may run beyond the edge.
  constexpr std::size_t rest = 74;
  std::size_t longest = 12;
  for (const Pair& pair : comparison.pairs) {
    longest = std::max(longest, result::display_width(name_of(pair)));
  }
  const std::size_t name_width =
      std::min(longest, std::max<std::size_t>(24, width > rest ? width - rest : 24));
  text += result::pad_right("", name_width) + "  " + result::pad_left("base", 8) + "  " +
          result::pad_left("new", 8) + "  new / base\n";
  const double reach = reach_of(comparison.pairs);
  for (const Pair& pair : comparison.pairs) text += line_of(pair, name_width, reach, utf8);
  return text + "\n" + summary(comparison);
}

}  // namespace attnbench::compare
