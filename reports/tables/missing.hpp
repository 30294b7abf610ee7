// What is missing from a ranking: series that were asked for and have no value that may be ranked.
// Nothing is said to be least where one of them might be less.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/statistics.hpp"
#include "core/status.hpp"

namespace attnbench::reports {

/// A series at a place of the axis.
struct Entrant {
  std::string series;
  std::optional<double> x;
  Status status = Status::ok;
  std::optional<Estimate> value;  ///< that may be ranked
  bool unchecked = false;         ///< an error that is one of the check alone
};

struct Missing {
  std::string series;
  Status status = Status::skipped;  ///< `ok` of what one process alone measured
  bool unchecked = false;

  bool operator==(const Missing&) const = default;
};

/// Entrants at one place that have no value there.
struct MissingAt {
  std::vector<Missing> below;  ///< which may be below the bound that was asked for
  std::vector<Missing> above;  ///< which are not: at a smaller size they are above it already
};

/// The entrants among `all` that are missing at `x`, by whether they may be below `bound`. What is
/// unsupported enters no ranking, and what ran out of memory is above everything. With `rises` a
/// value grows with the place, so that it is at least the series' own at any smaller one.
MissingAt missing_at(const std::vector<Entrant>& all, const std::optional<double>& x, double bound,
                     bool rises);

/// "flash was disturbed; latte and window were skipped", "the output of flash could not be
/// checked".
std::string missing_words(const std::vector<Missing>& missing);

}  // namespace attnbench::reports
