#include "reports/figures/verdicts.hpp"

#include <array>
#include <cstdio>
#include <fstream>

#include "core/text/format.hpp"
#include "core/text/printable.hpp"

namespace attnbench::reports {
namespace {

namespace fs = std::filesystem;
using Row = std::array<std::string, 7>;

const Row columns{"pair", "verdict", "new / base", "base", "new", "rounds", "reason"};

std::string three_decimals(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

std::string median_text(const std::optional<SideTime>& side) {
  return side ? text::human_seconds(side->median_seconds) : "";
}

std::vector<Row> rows_of(const Verdicts& verdicts) {
  std::vector<Row> rows;
  for (const PairVerdict& pair : verdicts.pairs) {
    rows.push_back({pair_name(pair), pair.verdict, ratio_words(pair), median_text(pair.base),
                    median_text(pair.changed), rounds_words(pair), pair.reason});
  }
  return rows;
}

/// "latte/fused compared with latte/scan, measured in turns", and how much is left out.
std::string heading(const Verdicts& verdicts) {
  int rounds = 0;
  int left_out = 0;
  for (const PairVerdict& pair : verdicts.pairs) {
    rounds += pair.rounds.value_or(0);
    left_out += pair.rounds_left_out;
  }
  std::string text =
      verdicts.turns.changed + " compared with " + verdicts.turns.base + ", measured " +
      (verdicts.turns.apart.empty() ? "in turns." : "apart: " + verdicts.turns.apart);
  if (left_out > 0) {
    text += " Left out: " + std::to_string(left_out) + " of " + std::to_string(rounds) +
            " rounds, in which other programs had the CPU.";
  }
  return text;
}

}  // namespace

ATTNBENCH_JSON_READER(SideTime) { JSON_AT(median_seconds); }

ATTNBENCH_JSON_READER(SelfRatio) { JSON_AT(ratio_low, ratio_high); }

ATTNBENCH_JSON_READER(PairVerdict) {
  JSON_AT(name, verdict);
  JSON_MAYBE(timing, reason, ratio, base, control, rounds, rounds_left_out);
  json.maybe("new", value.changed);
  if (value.ratio) JSON_AT(ratio_low, ratio_high);
}

ATTNBENCH_JSON_READER(VerdictSides) {
  JSON_AT(base);
  JSON_MAYBE(margin, confidence);
  json.at("new", value.changed);
}

ATTNBENCH_JSON_READER(Verdicts) { JSON_AT(turns, pairs); }

std::string pair_name(const PairVerdict& pair) {
  // The name says it already where the pass varies.
  const bool said = pair.timing.empty() || pair.name.find("=" + pair.timing) != std::string::npos;
  return pair.name + (said ? "" : " " + pair.timing);
}

std::string ratio_words(const PairVerdict& pair) {
  if (!pair.ratio) return "";
  return three_decimals(*pair.ratio) + " [" + three_decimals(pair.ratio_low.value()) + ", " +
         three_decimals(pair.ratio_high.value()) + "]";
}

std::string rounds_words(const PairVerdict& pair) {
  if (!pair.rounds) return "";
  const std::string counting = std::to_string(*pair.rounds - pair.rounds_left_out);
  if (pair.rounds_left_out == 0) return counting;
  return counting + ", and " + std::to_string(pair.rounds_left_out) + " disturbed";
}

std::optional<Verdicts> verdicts_beside(const fs::path& result,
                                        std::vector<std::string>& messages) {
  std::error_code ignored;
  const fs::path folder = fs::is_directory(result, ignored) ? result : result.parent_path();
  const fs::path file = folder / "ab.json";
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;
  try {
    std::ifstream stream(file);
    return Json::parse(stream).get<Verdicts>();
  } catch (const Json::exception&) {
  } catch (const SchemaError&) {
  }
  messages.push_back("verdicts left out: " + file.string() +
                     " is not what `attnbench ab` writes; run it again");
  return std::nullopt;
}

std::string verdicts_html(const std::optional<Verdicts>& verdicts) {
  if (!verdicts) return "";
  std::string html = "<p>" + text::escape_html(heading(*verdicts)) +
                     "</p>\n<div class=\"scroll\"><table class=\"words\">\n<tr>";
  for (const std::string& column : columns) html += "<th>" + text::escape_html(column) + "</th>";
  html += "</tr>\n";
  for (const Row& row : rows_of(*verdicts)) {
    html += "<tr>";
    for (const std::string& text : row) html += "<td>" + text::escape_html(text) + "</td>";
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string verdicts_markdown(const std::optional<Verdicts>& verdicts) {
  if (!verdicts) return "";
  const auto line = [](const Row& row) {
    std::string text = "|";
    for (const std::string& field : row) text += " " + text::escape_markdown(field) + " |";
    return text + "\n";
  };
  std::string text = "**" + text::escape_markdown(heading(*verdicts)) + "**\n\n" + line(columns) +
                     "|:--|:--|--:|--:|--:|--:|:--|\n";
  for (const Row& row : rows_of(*verdicts)) text += line(row);
  return text + "\n";
}

}  // namespace attnbench::reports
