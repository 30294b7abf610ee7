#include "harness/program/run/supervise/budget.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <vector>

#include "core/failure.hpp"
#include "core/text/printable.hpp"
#include "harness/program/run/plan/pace.hpp"
#include "reports/verdict/input.hpp"
#include "reports/verdict/undecided.hpp"

namespace attnbench::run {
namespace {

using Seconds = std::map<std::string, double>;
using reports::verdict::Undecided;

constexpr std::size_t most_lines = 12;

double sum_of(const std::set<std::string>& cells, const Seconds& seconds) {
  double sum = 0;
  for (const std::string& cell : cells) {
    const auto known = seconds.find(cell);
    if (known != seconds.end()) sum += known->second;
  }
  return sum;
}

/// Rounds by cell, of what is timed and may be timed again.
std::map<std::string, int> rounds_of(const result::Result& result) {
  std::map<std::string, int> rounds;
  for (const result::CellRecord& cell : result.cells) {
    const bool again = result::is_ok(cell) || result::is_disturbed(cell);
    const result::Timing* const timing = result::timing_of(cell);
    if (!again || cell.training || timing == nullptr) continue;
    std::int64_t last = -1;
    for (const result::TimingRound& round : timing->rounds) {
      last = std::max(last, round.round.value_or(-1));
    }
    if (last >= 0) rounds[cell.id] = static_cast<int>(last + 1);
  }
  return rounds;
}

std::vector<Undecided> undecided_of(const result::Result& result) {
  const auto input = reports::verdict::input_of(result);
  return reports::verdict::undecided_of(input, reports::verdict::judge(input));
}

/// A round of those of `cells` that have the fewest.
Further next_of(const std::set<std::string>& cells, const std::map<std::string, int>& rounds) {
  Further next;
  next.begin = Budget::most_rounds;
  for (const std::string& cell : cells) next.begin = std::min(next.begin, rounds.at(cell));
  for (const std::string& cell : cells) {
    if (rounds.at(cell) == next.begin) next.cells.insert(cell);
  }
  next.end = next.begin + 1;
  return next;
}

}  // namespace

double seconds_from(const std::string& flag, const std::string& word) {
  static const std::map<std::string, double> units{{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
  double count = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, count);
  const auto unit = units.find(std::string(rest, end));
  constexpr double longest = 1e9;
  const bool good = error == std::errc() && unit != units.end() && count > 0;
  if (good && count * unit->second <= longest) return count * unit->second;
  throw UsageFailure(flag + " " + text::quotable(word) +
                     ": expected a time above 0, such as 60s, 2m or 1.5h");
}

double Budget::seconds_left() const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun_;
  return seconds_ - passed.count();
}

std::optional<Further> Budget::operator()(const result::Result& result,
                                          const Seconds& seconds_of_rounds) const {
  const std::map<std::string, int> rounds = rounds_of(result);
  const double left = seconds_left();
  std::set<std::string> chosen;
  for (const auto& [cell, count] : rounds) {
    if (count < ranking_rounds) chosen.insert(cell);
  }
  if (!chosen.empty()) {
    const Further next = next_of(chosen, rounds);
    return sum_of(next.cells, seconds_of_rounds) <= left ? std::optional(next) : std::nullopt;
  }
  std::vector<std::set<std::string>> statements;
  for (const Undecided& one : undecided_of(result)) {
    std::set<std::string> cells;
    for (const std::string& cell : one.cells) {
      const auto known = rounds.find(cell);
      if (known != rounds.end() && known->second < most_rounds) cells.insert(cell);
    }
    if (!cells.empty()) statements.push_back(std::move(cells));
  }
  std::stable_sort(statements.begin(), statements.end(), [&](const auto& a, const auto& b) {
    return sum_of(a, seconds_of_rounds) < sum_of(b, seconds_of_rounds);
  });
  for (const std::set<std::string>& cells : statements) {
    std::set<std::string> with = chosen;
    with.insert(cells.begin(), cells.end());
    if (sum_of(with, seconds_of_rounds) <= left) chosen = std::move(with);
  }
  if (chosen.empty()) return std::nullopt;
  return next_of(chosen, rounds);
}

std::string budget_text(const result::Result& result, double seconds) {
  const std::string budget = "the budget of " + human_duration(seconds);
  const std::map<std::string, int> rounds = rounds_of(result);
  const bool few = std::any_of(rounds.begin(), rounds.end(),
                               [](const auto& one) { return one.second < Budget::ranking_rounds; });
  if (few) {
    return "Not decided: " + budget + " is used up before each cell had its " +
           std::to_string(Budget::ranking_rounds) + " rounds.\n";
  }
  const std::vector<Undecided> open = undecided_of(result);
  if (open.empty()) return "Nothing that is measured is left undecided within " + budget + ".\n";
  std::string text = "Not decided within " + budget + ":\n";
  const std::size_t shown = open.size() > most_lines ? most_lines - 1 : open.size();
  for (std::size_t i = 0; i < shown; ++i) text += "  " + open[i].words + "\n";
  if (shown < open.size()) text += "  and " + std::to_string(open.size() - shown) + " more\n";
  return text;
}

}  // namespace attnbench::run
