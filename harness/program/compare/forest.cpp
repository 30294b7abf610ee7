// A comparison for people (a forest of ratios) and for programs (JSON).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "core/text/format.hpp"
#include "harness/program/compare/compare.hpp"

namespace attnbench::compare {
namespace {

using text::Letters;

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

/// Whether the ratio and its bounds have logarithms. Where all rounds were disturbed there are
/// times but no ratio, and a file may hold times that nobody can measure.
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

std::string ratio_column(const Pair& pair) {
  if (!has_ratio(pair)) return "";
  return compare::ratio_text(pair.ratio, pair.ratio_low, pair.ratio_high);
}

std::string name_of(const Pair& pair) {
  return pair.what.empty() ? pair.name : pair.name + " " + pair.what;
}

/// What follows the verdict of a pair; mostly empty.
std::string remark_on(const Pair& pair) {
  std::string text = pair.reason;
  if (pair.left_out > 0 && pair.verdict != SpeedVerdict::unclear) {
    text += (text.empty() ? "" : "  ") +
            std::string(pair.beside_others ? "by least samples: " : "without ") +
            std::to_string(pair.left_out) + " of " + std::to_string(pair.rounds) +
            (pair.beside_others ? " rounds were disturbed" : " rounds, disturbed");
  }
  return text;
}

/// `text` broken between words, every line but the first indented.
std::string broken(const std::string& text, std::size_t width, const std::string& indent) {
  std::string lines;
  for (const std::string& line : text::wrap(text, width)) {
    lines += (lines.empty() ? "" : indent) + line + "\n";
  }
  return lines;
}

struct Forest {
  std::size_t width = 120;
  std::size_t name_width = 24;
  double reach = 0;
  bool bars = true;
  bool utf8 = true;
};

/// The pair's line, after lines of its own for the beginning of a long name and before those of a
/// remark that has no room beside it.
std::string lines_of(const Pair& pair, const Forest& forest) {
  const Letters letters = forest.utf8 ? Letters::utf8 : Letters::ascii;
  const std::vector<std::string> names = text::wrap(name_of(pair), forest.name_width);
  std::string text;
  for (std::size_t i = 0; i + 1 < names.size(); ++i) text += names[i] + "\n";
  std::string line = text::pad_right(names.empty() ? "" : names.back(), forest.name_width);
  if (pair.base && pair.changed) {
    const std::string before = text::human_seconds(pair.base->median, letters);
    const std::string after = text::human_seconds(pair.changed->median, letters);
    line += "  " + text::pad_left(before, 8) + "  " + text::pad_left(after, 8) + "  " +
            text::pad_right(ratio_column(pair), 21);
    if (forest.bars) line += "  " + bar(pair, forest.reach, forest.utf8);
  }
  line.append("  ").append(to_string(pair.verdict));
  const std::string remark = remark_on(pair);
  if (remark.empty()) return text + line + "\n";
  if (text::display_width(line) + 2 + text::display_width(remark) <= forest.width) {
    return text + line + "  " + remark + "\n";
  }
  const std::string indent(4, ' ');
  const std::size_t room = std::max<std::size_t>(forest.width, 24) - indent.size();
  return text + line + "\n" + indent + broken(remark, room, indent);
}

std::string note_on(const Turns& turns) {
  std::string text =
      "Each ratio is the median over rounds in which both took turns, in brackets its interval (" +
      percent(turns.confidence) + "); SAME is within " + percent(turns.margin);
  if (turns.gate.absolute_seconds > 0) {
    text += " or " + text::human_seconds(turns.gate.absolute_seconds, Letters::ascii);
  }
  return text + ".\n";
}

/// How many rounds count for nothing; empty where all do.
std::string left_out_words(const Comparison& comparison) {
  std::size_t rounds = 0;
  std::size_t left_out = 0;
  for (const Pair& pair : comparison.pairs) {
    rounds += pair.rounds;
    if (!pair.beside_others) left_out += pair.left_out;
  }
  if (left_out == 0) return "";
  return "Left out: " + std::to_string(left_out) + " of " + std::to_string(rounds) +
         " rounds, in which other programs had the CPU. `attnbench doctor` says who is busy.\n";
}

std::string summary(const Comparison& comparison) {
  std::string text = verdict_counts(comparison);
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

Json json_of(const Spread& spread, std::size_t rounds) {
  return {{"median_seconds", spread.median},
          {"low_seconds", spread.low},
          {"high_seconds", spread.high},
          {"rounds", rounds}};
}

Json json_of(const Turns& turns) {
  return {{"base", turns.base},       {"new", turns.changed},
          {"margin", turns.margin},   {"confidence", turns.confidence},
          {"threads", turns.threads}, {"gate", turns.gate}};
}

}  // namespace

Json to_json(const Pair& pair) {
  Json json = {{"id", pair.id}, {"name", pair.name}, {"verdict", to_string(pair.verdict)}};
  if (!pair.what.empty()) json.update({{"timing", pair.what}});
  if (!pair.reason.empty()) json.update({{"reason", pair.reason}});
  if (pair.rounds > 0) {
    json.update({{"rounds", pair.rounds}, {"rounds_left_out", pair.left_out}});
    if (pair.beside_others) json.update({{"beside_others", true}});
  }
  if (!pair.base || !pair.changed) return json;
  json.update({{"base", json_of(*pair.base, pair.base_rounds)},
               {"new", json_of(*pair.changed, pair.changed_rounds)}});
  if (!has_ratio(pair)) return json;
  json.update({{"ratio", pair.ratio},
               {"ratio_low", pair.ratio_low},
               {"ratio_high", pair.ratio_high},
               {"disjoint", pair.disjoint}});
  if (pair.control) {
    json.update({{"control",
                  {{"ratio", pair.control->ratio},
                   {"ratio_low", pair.control->low},
                   {"ratio_high", pair.control->high}}}});
  }
  if (pair.confirmation) {
    json.update({{"confirmation",
                  {{"ratio", pair.confirmation->ratio},
                   {"ratio_low", pair.confirmation->low},
                   {"ratio_high", pair.confirmation->high}}}});
  }
  if (pair.calibrated_ratio > 0) json.update({{"calibrated_ratio", pair.calibrated_ratio}});
  return json;
}

std::string ratio_text(double ratio, double low, double high) {
  return three_decimals(ratio) + " [" + three_decimals(low) + ", " + three_decimals(high) + "]";
}

std::string verdict_counts(const Comparison& comparison) {
  std::string text;
  for (const SpeedVerdict verdict :
       {SpeedVerdict::slow, SpeedVerdict::fast, SpeedVerdict::same, SpeedVerdict::unclear,
        SpeedVerdict::added, SpeedVerdict::gone}) {
    const auto count = std::count_if(comparison.pairs.begin(), comparison.pairs.end(),
                                     [&](const Pair& pair) { return pair.verdict == verdict; });
    if (count == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + " " + to_string(verdict);
  }
  return text;
}

Json to_json(const Comparison& comparison) {
  Json pairs = Json::array();
  for (const Pair& pair : comparison.pairs) pairs.push_back(to_json(pair));
  if (comparison.turns) {
    return {{"schema", 1}, {"turns", json_of(*comparison.turns)}, {"pairs", pairs}};
  }
  return {{"schema", 1},
          {"basis", comparison.basis},
          {"same_machine", comparison.same_machine},
          {"differences", comparison.differences},
          {"pairs", pairs},
          {"timed", comparison.timed},
          {"disjoint", comparison.disjoint},
          {"disjoint_by_chance", comparison.disjoint_by_chance}};
}

std::string to_text(const Comparison& comparison, std::size_t width, bool utf8) {
  std::string text = comparison.basis.empty() ? "" : broken(comparison.basis, width, "");
  if (comparison.turns) {
    text += "base  " + comparison.turns->base + "\nnew   " + comparison.turns->changed + "\n";
  }
  for (const std::string& difference : comparison.differences) {
    text += broken("differs: " + difference, width, "    ");
  }
  if (!text.empty()) text += "\n";
  // Times, ratio, bar and verdict take 74 columns, 23 of them the bar.
  constexpr std::size_t rest = 74;
  constexpr std::size_t least_name = 24;
  std::size_t longest = 12;
  for (const Pair& pair : comparison.pairs) {
    longest = std::max(longest, text::display_width(name_of(pair)));
  }
  Forest forest;
  forest.width = width;
  forest.utf8 = utf8;
  forest.bars = width >= rest + least_name;
  const std::size_t taken = forest.bars ? rest : rest - bar_width - 2;
  forest.name_width =
      std::min(longest, std::max(least_name, width > taken ? width - taken : least_name));
  forest.reach = reach_of(comparison.pairs);
  text += text::pad_right("", forest.name_width) + "  " + text::pad_left("base", 8) + "  " +
          text::pad_left("new", 8) + "  new / base\n";
  for (const Pair& pair : comparison.pairs) text += lines_of(pair, forest);
  text += "\n";
  std::istringstream sentences(summary(comparison));
  for (std::string sentence; std::getline(sentences, sentence);) {
    text += broken(sentence, width, "");
  }
  return text;
}

}  // namespace attnbench::compare
