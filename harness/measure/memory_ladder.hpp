// The memory ladder: how fast data are copied, by how much is touched over and over.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace attnbench::measure {

/// Bytes touched by all threads together, and the rate of copying half of them onto the other half.
struct Rung {
  double bytes = 0;
  double bytes_per_second = 0;
};

/// In rising order, each four times the one before, from 128 KiB to 512 MiB, or to `most_bytes` if
/// that is less. Takes about a second.
std::vector<Rung> memory_ladder(int threads, double most_bytes);

/// How many times slower touching `large` bytes is than touching `small`, at least 1. Between rungs
/// by the logarithm; beyond the ends as at the end. 1 without rungs. A rung that is faster than a
/// smaller one was disturbed less, and counts for both.
double slowdown(const std::vector<Rung>& ladder, double small, double large);

/// [{bytes, bytes_per_second}, …].
nlohmann::json to_json(const std::vector<Rung>& ladder);

}  // namespace attnbench::measure
