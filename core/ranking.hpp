// Ranking of measurements: which is least, and which cannot be told from it.
#pragma once

#include <cstddef>
#include <vector>

namespace attnbench::measure {

/// A median with the bounds of its interval; all three alike where the number is exact.
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// Indices of those that cannot be told from the least, by median, the least first: their intervals
/// overlap with its own.
std::vector<std::size_t> least_of(const std::vector<Estimate>& estimates);

}  // namespace attnbench::measure
