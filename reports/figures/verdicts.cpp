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

std::string three_decimals(const Json& value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value.get<double>());
  return text.data();
}

std::string ratio_text(const Json& pair) {
  if (!pair.contains("ratio")) return "";
  return three_decimals(pair["ratio"]) + " [" + three_decimals(pair.at("ratio_low")) + ", " +
         three_decimals(pair.at("ratio_high")) + "]";
}

std::string median_of(const Json& pair, const char* side) {
  if (!pair.contains(side)) return "";
  return result::human_seconds(pair[side].at("median_seconds").get<double>());
}

/// "12", "4, and 6 disturbed".
std::string rounds_text(const Json& pair) {
  if (!pair.contains("rounds")) return "";
  const int left_out = pair.value("rounds_left_out", 0);
  const std::string counting = std::to_string(pair["rounds"].get<int>() - left_out);
  return left_out == 0 ? counting : counting + ", and " + std::to_string(left_out) + " disturbed";
}

std::vector<Row> rows_of(const Json& verdicts) {
  std::vector<Row> rows;
  for (const Json& pair : verdicts.at("pairs")) {
    const std::string timing = pair.value("timing", "");
    rows.push_back({pair.at("name").get<std::string>() + (timing.empty() ? "" : " " + timing),
                    pair.at("verdict").get<std::string>(), ratio_text(pair),
                    median_of(pair, "base"), median_of(pair, "new"), rounds_text(pair),
                    pair.value("reason", "")});
  }
  return rows;
}

/// "latte/fused held against latte/scan, measured in turns"; what is left out, counted.
std::string heading(const Json& verdicts) {
  const Json& turns = verdicts.at("turns");
  int rounds = 0;
  int left_out = 0;
  for (const Json& pair : verdicts.at("pairs")) {
    rounds += pair.value("rounds", 0);
    left_out += pair.value("rounds_left_out", 0);
  }
  std::string text = turns.at("new").get<std::string>() + " held against " +
                     turns.at("base").get<std::string>() + ", measured in turns.";
  if (left_out > 0) {
    text += " Left out: " + std::to_string(left_out) + " of " + std::to_string(rounds) +
            " rounds, in which other programs had the CPU.";
  }
  return text;
}

}  // namespace

Json verdicts_beside(const fs::path& result, std::vector<std::string>& messages) {
  std::error_code ignored;
  const fs::path folder = fs::is_directory(result, ignored) ? result : result.parent_path();
  const fs::path file = folder / "ab.json";
  if (!fs::is_regular_file(file, ignored)) return nullptr;
  try {
    std::ifstream stream(file);
    Json verdicts = Json::parse(stream);
    heading(verdicts);
    rows_of(verdicts);
    return verdicts;
  } catch (const Json::exception&) {
    messages.push_back("verdicts left out: " + file.string() +
                       " is not what `attnbench ab` writes; run it again");
  }
  return nullptr;
}

std::string verdicts_html(const Json& verdicts) {
  if (!verdicts.is_object()) return "";
  std::string html = "<p>" + result::escape_html(heading(verdicts)) +
                     "</p>\n<div class=\"scroll\"><table class=\"words\">\n<tr>";
  for (const std::string& column : columns) html += "<th>" + result::escape_html(column) + "</th>";
  html += "</tr>\n";
  for (const Row& row : rows_of(verdicts)) {
    html += "<tr>";
    for (const std::string& text : row) html += "<td>" + result::escape_html(text) + "</td>";
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string verdicts_markdown(const Json& verdicts) {
  if (!verdicts.is_object()) return "";
  const auto line = [](const Row& row) {
    std::string text = "|";
    for (const std::string& field : row) text += " " + result::escape_markdown(field) + " |";
    return text + "\n";
  };
  std::string text = "**" + result::escape_markdown(heading(verdicts)) + "**\n\n" + line(columns) +
                     "|:--|:--|--:|--:|--:|--:|:--|\n";
  for (const Row& row : rows_of(verdicts)) text += line(row);
  return text + "\n";
}

}  // namespace attnbench::reports
