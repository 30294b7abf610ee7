#include "core/memory_ladder.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace attnbench {
namespace {

/// Seconds per byte, greater the more is touched.
double seconds_per_byte(const std::vector<Rung>& ladder, double bytes) {
  std::vector<Rung> falling = ladder;
  for (std::size_t i = falling.size() - 1; i-- > 0;) {
    falling[i].bytes_per_second =
        std::max(falling[i].bytes_per_second, falling[i + 1].bytes_per_second);
  }
  if (bytes <= falling.front().bytes) return 1 / falling.front().bytes_per_second;
  for (std::size_t i = 1; i < falling.size(); ++i) {
    const Rung& a = falling[i - 1];
    const Rung& b = falling[i];
    if (bytes > b.bytes) continue;
    const double along = std::log(bytes / a.bytes) / std::log(b.bytes / a.bytes);
    return 1 / (a.bytes_per_second * std::pow(b.bytes_per_second / a.bytes_per_second, along));
  }
  return 1 / falling.back().bytes_per_second;
}

}  // namespace

double slowdown(const std::vector<Rung>& ladder, double small, double large) {
  if (ladder.empty() || large <= small) return 1;
  return seconds_per_byte(ladder, large) / seconds_per_byte(ladder, small);
}

nlohmann::json to_json(const std::vector<Rung>& ladder) {
  nlohmann::json out = nlohmann::json::array();
  for (const Rung& each : ladder) {
    out.push_back({{"bytes", each.bytes}, {"bytes_per_second", each.bytes_per_second}});
  }
  return out;
}

}  // namespace attnbench
