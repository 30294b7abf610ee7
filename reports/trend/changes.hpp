// Change points: where the level of a series of times moved, and by how much.
#pragma once

#include <cstddef>
#include <vector>

namespace attnbench::reports::trend {

/// A change of level: from `at` on the values are `ratio` times those before, up to the changes
/// next to it.
struct Change {
  std::size_t at = 0;  ///< the first value of the new level
  double ratio = 1;  ///< the median of all ratios of a value after to one before (Hodges, Lehmann)
  double low = 1;    ///< its interval at 95 % or more, by ranks (Mann, Whitney)
  double high = 1;
};

/// The least values on either side of a change: with fewer, ranks leave no interval at 95 %.
constexpr std::size_t least_side = 5;

/// The changes of `values`, which are positive and in order of time. A series is split where the
/// ranks on both sides differ most, if at most 1 in 100 shuffles of the series (999, by a fixed
/// seed) has a split that differs as much; then its parts are. A drift is split, too, once it is
/// long enough: a change says that the level moved, not why. A change whose interval holds 1 is
/// left out.
std::vector<Change> changes_of(const std::vector<double>& values);

}  // namespace attnbench::reports::trend
