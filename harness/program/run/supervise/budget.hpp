// Rounds by a budget of time: of every cell the few that rank it, then of those alone on which an
// undecided verdict depends.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "core/result/document.hpp"
#include "harness/program/run/supervise/schedule.hpp"

namespace attnbench::run {

/// The seconds that "90", "60s", "2m" or "1.5h" says, above 0. Throws UsageFailure, naming `flag`.
double seconds_from(const std::string& flag, const std::string& word);

/// A RunSettings::next_rounds for a run of one round: asks for one more at a time, of all cells up
/// to `ranking_rounds`, then of the cells of statements that are undecided, the cheapest first
/// where not all fit, those behind before those ahead. It ends where nothing is undecided, where no
/// further round fits what is left of the time, or after `most_rounds` of each.
class Budget {
 public:
  static constexpr int ranking_rounds = 3;
  static constexpr int most_rounds = 50;

  /// The time begins now.
  explicit Budget(double seconds) : seconds_(seconds) {}
  std::optional<Further> operator()(const result::Result& result,
                                    const std::map<std::string, double>& seconds_of_rounds) const;

 private:
  double seconds_left() const;

  double seconds_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

/// What a run by a budget of `seconds` ends with: which statements it left undecided, or that
/// there are none. Lines for people, the last with its newline.
std::string budget_text(const result::Result& result, double seconds);

}  // namespace attnbench::run
