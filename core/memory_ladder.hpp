// The memory ladder: rates of copying by the size of the memory that is touched, and the times that
// follow from them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace attnbench {

/// Bytes touched by all threads together, and the rate of copying half of them onto the other half.
struct Rung {
  double bytes = 0;
  double bytes_per_second = 0;
};

/// How many times slower touching `large` bytes is than touching `small`, at least 1. Between rungs
/// by the logarithm; beyond the ends as at the end. 1 without rungs. A rung that is faster than a
/// smaller one was disturbed less, and counts for both.
double slowdown(const std::vector<Rung>& ladder, double small, double large);

/// Writes the ladder as [{bytes, bytes_per_second}, …].
nlohmann::json to_json(const std::vector<Rung>& ladder);

}  // namespace attnbench
