#include "reports/verdict/sentences.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/quality.hpp"
#include "reports/verdict/ranking.hpp"
#include "reports/verdict/ranking_table.hpp"

namespace attnbench::reports::verdict {
namespace {

constexpr std::size_t max_listed = 8;

using text::name_in_sentence;

std::string listed(const std::vector<std::string>& words, const std::string& last = " and ",
                   const std::string& between = ", ") {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last : between;
    text += words[i];
  }
  return text;
}

std::vector<std::string> names_of(const std::vector<std::string>& labels) {
  std::vector<std::string> names;
  for (const std::string& label : labels) names.push_back(name_in_sentence(label));
  return names;
}

/// The first few, and how many more.
std::string shortened(std::vector<std::string> words) {
  if (words.size() > max_listed) {
    const std::size_t left = words.size() - max_listed + 1;
    words.resize(max_listed - 1);
    words.push_back(std::to_string(left) + " more");
  }
  return listed(words, "; ", "; ");
}

/// Two significant digits, or three.
std::string significant(double value, int digits) {
  std::array<char, 32> text{};
  const bool whole = value >= 99.5;
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : digits == 2 ? "%#.2g" : "%#.3g", value);
  std::string written = text.data();
  if (written.ends_with('.')) written.pop_back();
  return written;
}

}  // namespace

std::string range_text(double low, double high, int digits) {
  return significant(low, digits) + " to " + significant(high, digits);
}

std::string times_text(const Estimate& ratio) {
  const bool near_one = ratio.low < 1.25 && ratio.high > 0.8;
  const int digits = near_one ? 3 : text::supported_digits(ratio.median, ratio.low, ratio.high);
  return significant(ratio.median, digits) + " (" + range_text(ratio.low, ratio.high, digits) + ")";
}

std::string timed_words(const Answer& answer) {
  if (answer.what == "forward" || answer.what == "backward") return answer.what + " pass";
  if (answer.what == "forward+backward") return "forward and backward pass";
  return answer.what.empty() ? "time" : answer.what;
}

std::string named_list(const std::vector<std::string>& labels, const std::string& last) {
  return listed(names_of(labels), last);
}

namespace {

/// What a place's answer is, without the place.
std::string labels_text(const Fastest& one) {
  if (one.labels.empty()) return "cannot tell";
  const std::string names = listed(names_of(one.labels));
  return (one.labels.size() == 1 ? "" : "cannot tell between ") + names;
}

/// What the answer rests on besides times.
std::string reasons(const Fastest& one) {
  std::string text;
  if (!one.missing.below.empty()) text += ": " + missing_words(one.missing.below);
  if (one.labels.empty() || one.missing.above.empty()) return text;
  return text + " (" + missing_words(one.missing.above) + ", but slower at less)";
}

/// "window at 256 to 1024; cannot tell between flash and window at 2048; cannot tell at 4096: flash
/// was disturbed".
std::string fastest_text(const Answer& answer) {
  std::vector<std::string> parts;
  const std::vector<Fastest>& all = answer.fastest;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::string what = labels_text(all[begin]);
    const std::string why = reasons(all[begin]);
    std::size_t end = begin + 1;
    while (end < all.size() && labels_text(all[end]) == what && reasons(all[end]) == why) ++end;
    std::string text = what;
    if (all[begin].x) {
      text += " at " + place_text(answer.axis, *all[begin].x);
      if (end > begin + 1) text += " to " + place_text(answer.axis, *all[end - 1].x);
    }
    parts.push_back(text + why);
    begin = end;
  }
  return listed(parts, "; ", "; ");
}

std::vector<std::string> amounts_text(const std::vector<Amount>& amounts) {
  std::vector<std::string> parts;
  for (const Amount& one : amounts) {
    parts.push_back(name_in_sentence(one.label) + " " + text::human_bytes(one.bytes));
  }
  return parts;
}

std::string accuracy_text(const Accuracy& one) {
  std::string text = name_in_sentence(one.label) + " " + share_text(one.mean);
  if (one.state_bytes) text += " (" + text::human_bytes(*one.state_bytes) + ")";
  return text;
}

void add_accuracy_lines(const Answer& answer, std::vector<Line>& lines) {
  if (answer.accuracies.empty()) return;
  std::vector<std::string> parts;
  for (const Accuracy& one : answer.accuracies) parts.push_back(accuracy_text(one));
  const std::string& best = answer.measure.best;
  lines.push_back({answer.measure.words + " (state)", shortened(parts)});
  const bool alone = answer.accuracies.size() < 2;
  if (!answer.untrained.empty()) {
    lines.push_back({best, "cannot tell: " + missing_words(answer.untrained)});
  } else if (answer.max_accurate.size() == 1) {
    lines.push_back({best, name_in_sentence(answer.max_accurate.front())});
  } else if (answer.max_accurate.size() > 1) {
    lines.push_back({best, "cannot tell between " + listed(names_of(answer.max_accurate)) +
                               ": their seeds overlap"});
  } else if (!alone) {
    lines.push_back({best, "not ranked: that takes two seeds or more of each (model_seed)"});
  }
}

/// `text` behind a topic, in lines of at most `width` columns.
std::string hanging(const std::string& topic, const std::string& text, std::size_t width) {
  const std::string head = "    " + topic + ": ";
  std::string out;
  for (const std::string& line : text::wrap(head.substr(4) + text, width > 30 ? width - 6 : 24)) {
    out += (out.empty() ? "    " : "      ") + line + "\n";
  }
  return out;
}

}  // namespace

std::string place_text(const std::string& axis, double x) {
  if (axis == "state_bytes") return text::human_bytes(x);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.10g", x);
  return text.data();
}

namespace {

std::string text_of(const std::vector<Gap>& gaps) {
  std::vector<std::string> parts;
  for (const Gap& gap : gaps) {
    std::vector<std::string> lengths;
    for (const double length : gap.lengths) lengths.push_back(place_text("length", length));
    parts.push_back("cannot tell at " + listed(lengths) + ": " + missing_words(gap.missing));
  }
  return listed(parts, "; ", "; ");
}

/// A length with two significant digits, since no interval supports more.
std::string rounded_length(double length) {
  if (!(length >= 1)) return "1";
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(length)) - 1));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f", std::round(length / unit) * unit);
  return text.data();
}

/// What was found in words, or as a column of a table has it.
std::string found_text(const CrossingStatement& one, bool column) {
  const auto measured = [](double length) { return place_text("length", length); };
  const auto bound = [&](double length) {
    return one.within_gap ? measured(length) : rounded_length(length);
  };
  switch (one.crossing) {
    case CrossingKind::found: {
      const std::string high = bound(one.high);
      const std::string low = one.low ? bound(*one.low) : "";
      if (one.within_gap && !column) {
        return "from " + (low.empty() ? "at most " : "somewhere between " + low + " and ") + high +
               " tokens on";
      }
      const std::string most = column ? "<= " : "at most ";
      const std::string range = (low.empty() ? most : low + " to ") + high;
      if (one.within_gap) return range;
      const std::string length = rounded_length(one.length);
      return (column ? length : "from " + length + " tokens on") + " (" + range + ")";
    }
    case CrossingKind::below: {
      const std::string shortest = measured(one.shortest);
      return column ? "<= " + shortest : "at all measured lengths, from " + shortest + " on";
    }
    case CrossingKind::none:
      return "not up to " + measured(one.longest);
    case CrossingKind::reverse:
      return column ? "short ones alone" : "at short lengths alone";
    case CrossingKind::several:
      return column ? "some lengths" : "at some lengths: the order changes more than once";
    case CrossingKind::undecided:
      return column ? "cannot tell" : "cannot tell at " + measured(one.longest);
    case CrossingKind::missing:
      break;
  }
  return column ? "cannot tell" : "";
}

}  // namespace

std::string short_text_of(const CrossingStatement& crossover) {
  return found_text(crossover, true);
}

std::string text_of(const CrossingStatement& crossover) {
  const std::string found = found_text(crossover, false), gaps = text_of(crossover.gaps);
  return found + (found.empty() || gaps.empty() ? "" : "; ") + gaps;
}

namespace {

/// A line of each mechanism; one of those that say the same of what is missing, against the same.
void add_crossing_lines(const Answer& answer, std::vector<Line>& lines) {
  struct Shared {
    const CrossingStatement* first;
    std::vector<std::string> names;
  };
  std::vector<Shared> all;
  const auto named = [](const std::string& name) { return name.empty() ? "" : " (" + name + ")"; };
  for (const CrossingStatement& one : answer.crossings) {
    const std::string name = name_in_sentence(one.label) + named(one.implementation);
    const auto same = std::find_if(all.begin(), all.end(), [&](const Shared& other) {
      return !one.gaps.empty() && other.first->against == one.against &&
             text_of(*other.first) == text_of(one);
    });
    if (same == all.end()) {
      all.push_back({&one, {name}});
    } else {
      same->names.push_back(name);
    }
  }
  for (const Shared& shared : all) {
    lines.push_back(
        {listed(shared.names) + " faster than exact attention" + named(shared.first->against),
         text_of(*shared.first)});
  }
}

}  // namespace

std::vector<Line> lines_of(const Answer& answer) {
  std::vector<Line> lines;
  if (!answer.fastest.empty()) lines.push_back({"fastest", fastest_text(answer)});
  if (answer.one_process_each) {
    lines.push_back({"fastest", "not ranked: one process timed each; --rounds 3 or more ranks"});
  }
  // Where nothing is ranked, the list of what is not ok says why.
  const bool none_told =
      answer.fastest.empty() && std::all_of(answer.crossings.begin(), answer.crossings.end(),
                                            [](const CrossingStatement& one) {
                                              return one.crossing == CrossingKind::missing;
                                            });
  if (!none_told) add_crossing_lines(answer, lines);
  for (const auto& [label, found] : answer.searched) {
    lines.push_back({label + " faster than exact attention from (tokens)", found});
  }
  const std::string at =
      answer.bytes_at ? " at " + answer.place + " " + place_text(answer.axis, *answer.bytes_at)
                      : "";
  if (!answer.workspaces.empty()) {
    lines.push_back({"smallest workspace" + at, shortened(amounts_text(answer.workspaces))});
  }
  if (!answer.states.empty() && answer.accuracies.empty()) {
    lines.push_back({"smallest state" + at, shortened(amounts_text(answer.states))});
  }
  add_accuracy_lines(answer, lines);
  return lines;
}

std::vector<Line> lines_of(const std::vector<Exception>& exceptions) {
  std::vector<Line> lines;
  for (const Exception& one : exceptions) {
    const std::string count = std::to_string(one.count) + " " + to_string(one.status);
    lines.push_back({count, shortened(one.labels)});
  }
  return lines;
}

std::string sentence_of(const std::string& machine, const Ranking& ranking) {
  if (ranking.headline.empty()) return "";
  std::string where = machine;
  if (!ranking.conditions.empty()) where += (where.empty() ? "" : ", ") + ranking.conditions;
  std::vector<std::string> used;
  for (const RankedRow& row : ranking.rows) {
    if (row.fastest && !ranking.by_quality) used.push_back(row.implementation);
  }
  const bool said = std::find(used.begin(), used.end(), ranking.against) != used.end();
  if (!ranking.against.empty() && !used.empty() && !said) {
    used.push_back("exact attention is " + ranking.against);
  }
  return (where.empty() ? "" : "On " + where + ": ") + ranking.headline +
         (used.empty() ? "" : " (" + listed(used, "; ", "; ") + ")") + ".";
}

std::string text_of(const Verdict& verdict, const TableStyle& style) {
  std::string text;
  for (const Ranking& ranking : verdict.rankings) {
    if (!text.empty()) text += "\n";
    for (const std::string& line : text::wrap(ranking.headline, style.width)) text += line + "\n";
    text += table(grid_of(ranking, style.letters), ranked_things, style);
  }
  for (const Answer& answer : verdict.answers) {
    if (is_in_table(answer)) continue;
    const std::vector<Line> lines = lines_of(answer);
    if (lines.empty()) continue;
    text += "  " + answer.task + "\n";
    for (const Line& line : lines) text += hanging(line.topic, line.text, style.width);
  }
  std::string rest;
  for (const Line& line : lines_of(verdict.exceptions)) {
    rest += hanging(line.topic, line.text, style.width).substr(2);
  }
  for (const std::string& line :
       text::wrap(verdict.sentence, style.width > 30 ? style.width - 2 : 28)) {
    rest += "  " + line + "\n";
  }
  if (!text.empty() && !rest.empty()) text += "\n";
  text += rest;
  return text.empty() ? "" : "Verdict\n" + text;
}

}  // namespace attnbench::reports::verdict
