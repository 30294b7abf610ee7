#include "harness/program/run/folder/parts.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/statistics.hpp"

namespace attnbench::run {
namespace {

/// Seconds of a round by part; empty where the record does not say.
std::map<std::string, double> parts_of(const result::RoundRecord& record) {
  std::map<std::string, double> parts;
  const Json* const said = find_value(record.measured.further, "parts");
  if (said == nullptr || !record.wall_seconds) return parts;
  double rest = *record.wall_seconds;
  for (const auto& [name, seconds] : said->items()) {
    parts[name] = seconds.get<double>();
    rest -= parts[name];
  }
  parts["start_and_end"] = std::max(0.0, rest);
  return parts;
}

std::string line(const std::string& name, double seconds, double all, const std::string& more) {
  std::array<char, 120> text{};
  std::snprintf(text.data(), text.size(), "  %-24s %8.1f s %6.1f %%", name.c_str(), seconds,
                all > 0 ? 100 * seconds / all : 0);
  return text.data() + more + "\n";
}

std::string spread(const std::vector<double>& seconds) {
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "   median %.0f ms, greatest %.0f ms",
                1e3 * median(seconds), 1e3 * *std::max_element(seconds.begin(), seconds.end()));
  return text.data();
}

}  // namespace

std::string parts_table(const Records& rounds, std::optional<double> run_seconds) {
  std::map<std::string, std::vector<double>> by_part;
  double all = 0;
  std::size_t count = 0;
  for (const auto& [cell, records] : rounds) {
    for (const result::RoundRecord& record : records) {
      const auto parts = parts_of(record);
      if (parts.empty()) continue;
      for (const auto& [name, seconds] : parts) by_part[name].push_back(seconds);
      all += *record.wall_seconds;
      ++count;
    }
  }
  if (count == 0) return "";
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, seconds] : by_part) {
    double sum = 0;
    for (const double one : seconds) sum += one;
    order.emplace_back(sum, name);
  }
  std::sort(order.rbegin(), order.rend());
  std::string table = "where the time of " + std::to_string(count) +
                      (count == 1 ? " round" : " rounds") + " went\n";
  for (const auto& [sum, name] : order) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    table += line(words, sum, all, spread(by_part.at(name)));
  }
  if (!run_seconds) return table;
  const double outside = std::max(0.0, *run_seconds - all);
  return table + line("outside of rounds", outside, *run_seconds, " of the run");
}

}  // namespace attnbench::run
